"""Extensions of Abhed in Python: one file, the standard library only.

    from abhed_ext import Extension

    ext = Extension()

    @ext.on("tool_call")
    def judge(request):
        if request["tool"] == "bash" and "rm -rf" in request["args"].get("command", ""):
            return {"block": True, "reason": "not here"}

    @ext.tool("add", "Add two numbers", {"type": "object", "properties": {...}}, mutates=False)
    def add(args, request):
        return str(args["a"] + args["b"])

    ext.run()

A handler gets the request and returns the reply as a dict, or None for no opinion.
A tool gets its arguments and the request and returns its text; an exception makes
the result an error. An exception in a handler ends the extension: what that means
is its on_failure, and guessing an answer would be worse.

print() is safe: run() sends everything but replies to standard error, and so to the
log, what child processes print included. Standard input is empty for them and you.
"""

import json
import os
import sys
import traceback

EVENTS = (
    "session_start", "session_end", "user_prompt_submit", "before_agent_start", "context", "tool_call",
    "permission_request", "tool_result", "before_compact", "turn_end", "subagent_end", "notification",
)


class Extension:
    """An extension: handlers by event, and tools by name."""

    def __init__(self):
        self._handlers = {}
        self._tools = {}

    def on(self, event):
        """Make the decorated function the handler of an event."""
        if event not in EVENTS:
            raise ValueError(f"there is no event {event!r}; the events are {', '.join(EVENTS)}")

        def register(handler):
            self._handlers[event] = handler
            return handler

        return register

    def tool(self, name, description, schema, mutates=True):
        """Provide the decorated function as a tool. schema describes an object."""

        def register(function):
            offer = {"name": name, "description": description, "schema": schema, "mutates": mutates}
            self._tools[name] = (offer, function)
            return function

        return register

    def answer(self, request):
        """Return the reply to a request; run() does this for each."""
        event = request["event"]
        if event == "list_tools":
            return {"tools": [offer for offer, _ in self._tools.values()]} if self._tools else {}
        if event == "invoke_tool":
            return self._invoke(request)
        handler = self._handlers.get(event)
        reply = handler(request) if handler else None
        if reply is None:
            return {}
        if not isinstance(reply, dict):
            raise TypeError(f"the handler of {event} returned {type(reply).__name__}, expected a dict or None")
        return reply

    def _invoke(self, request):
        _, function = self._tools[request["tool"]]
        try:
            return {"result": str(function(request["args"], request))}
        except Exception as failure:
            traceback.print_exc()
            return {"result": f"{type(failure).__name__}: {failure}", "is_error": True}

    def run(self):
        """Answer until the input ends."""
        requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
        sys.stdout.flush()
        os.dup2(2, 1)
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        for line in requests:
            reply = self.answer(json.loads(line))
            # ASCII with escapes: no locale can change it, and it is one line.
            replies.write(json.dumps(reply, allow_nan=False).encode("ascii") + b"\n")
            replies.flush()
