#!/usr/bin/env python3
"""What an extension can do, in Python. The other examples do the same."""

import re

from abhed_ext import Extension

ext = Extension()
KEY = re.compile(r"AKIA[A-Z0-9]{16}")


@ext.on("user_prompt_submit")
def prompt(request):
    if "AKIA" in request["content"]:
        return {"block": True, "reason": "the message holds an access key; take it out and send it again"}


@ext.on("before_agent_start")
def system(request):
    return {"system": "Run the tests before you say that you are done."}


@ext.on("context")
def context(request):
    """Leave out whatever holds a private key."""
    return {"keep": [m["index"] for m in request["messages"] if "PRIVATE KEY" not in m["content"]]}


@ext.on("tool_call")
def call(request):
    command = request["args"].get("command", "")
    if request["tool"] != "bash":
        return None
    if "rm -rf" in command:
        return {"block": True, "reason": "rm -rf isn't run here; name what is to go"}
    if "git push" in command:
        return {"ask": True, "reason": "it publishes"}
    if "http://" in command:
        return {"args": {**request["args"], "command": command.replace("http://", "https://")}}


@ext.on("tool_result")
def result(request):
    if KEY.search(request["content"]):
        return {"content": KEY.sub("[redacted]", request["content"])}


@ext.on("before_compact")
def compact(request):
    messages = request["messages"]
    if any("keep the history" in m["content"] for m in messages):
        return {"cancel": True}
    asked = "".join("\n- " + m["content"] for m in messages if m["role"] == "user")
    return {"summary": "What the person asked for:" + asked}


@ext.on("turn_end")
def turn_end(request):
    return {"log": "a turn has ended"}


@ext.tool(
    "word_count", "Count the words of a text",
    {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}, mutates=False,
)
def word_count(args, request):
    if not args.get("text"):
        raise ValueError("there is no text to count in")
    return str(len(args["text"].split()))


if __name__ == "__main__":
    ext.run()
