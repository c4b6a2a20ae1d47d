"""What the test has the Python client do: python3 session.py FOLDER COMMAND..."""

import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from client import Abhed, AbhedError  # noqa: E402

folder, command = pathlib.Path(sys.argv[1]), sys.argv[2:]
seqs, steered, hanging, text = [], [], threading.Event(), []


def on_event(event):
    seqs.append(event["seq"])
    payload = event["payload"]
    if event["type"] == "approval.requested":
        wrong = dict(payload, hash="0" * 64)
        abhed.approve(wrong).add_done_callback(lambda f: settled.append(f.exception().code))
        abhed.approve(payload, comment="go on").add_done_callback(lambda f: settled.append(f.result()["type"]))
    elif event["type"] == "tool.started" and not answers:
        # The command waits for the file, so that this reaches the running prompt.
        abhed.steer("and be quick").add_done_callback(went_on)
    elif event["type"] == "user.message" and payload.get("steered"):
        steered.append(payload["text"])


def on_delta(delta):
    if delta["kind"] == "text" and answers:
        hanging.set()
    elif delta["kind"] == "text":
        text.append(delta["text"])


def went_on(reply):
    settled.append(reply.result()["type"])
    (folder / "go").touch()


settled, answers = [], []
abhed = Abhed(command, on_event=on_event, on_delta=on_delta)
ready = abhed.start(workspace=str(folder), mode="default", approve="client", deltas=True).result(60)
assert ready["type"] == "ready" and ready["protocol"] == 1 and "bash" in ready["tools"], ready

answers.append(abhed.prompt("wait for it").result(60))
assert answers[0]["type"] == "answer" and answers[0]["answer"] == "it is there \u2028 now" and answers[0]["reason"] == "completed", answers
assert settled == ["usage", "settled", "steered"], settled
assert steered == ["and be quick"], steered
assert "".join(text) == answers[0]["answer"], text

second = abhed.prompt("hang")
assert hanging.wait(60)
assert abhed.interrupt().result(60)["running"] is True
try:
    second.result(60)
    sys.exit("a prompt that was interrupted was answered")
except AbhedError as error:
    assert error.code == "interrupted" and error.reply["reason"] == "user_interrupt", error.reply

usage = abhed.send("usage").result(60)
assert usage["turns"] >= 2 and usage["tokens"]["input"] > 0, usage
tools = {tool["name"]: tool for tool in abhed.send("tools").result(60)["tools"]}
assert sorted(tools) == sorted(ready["tools"]) and tools["bash"]["schema"]["type"] == "object", tools

# A command in the background outlives its prompt.
assert abhed.prompt("begin a job").result(60)["answer"] == "it runs"
(task,) = abhed.send("tasks").result(60)["tasks"]
assert task["kind"] == "command" and task["state"] == "running", task
assert abhed.send("cancel_task", task_id=task["task_id"]).result(60)["type"] == "cancelled"
(task,) = abhed.send("tasks").result(60)["tasks"]
assert task["state"] != "running", task

assert len(abhed.send("providers").result(60)["providers"]) > 1
assert abhed.send("set_model", model="other/large").result(60)["model"] == "other/large"
assert abhed.prompt("who are you?").result(60)["answer"] == "the other one"
lines = abhed.send("export").result(60)["content"].splitlines()
assert seqs == list(range(1, len(seqs) + 1)) and len(lines) >= len(seqs), (len(lines), seqs)
assert abhed.send("export", format="html").result(60)["content"].startswith("<!doctype html>")

forked = abhed.send("fork").result(60)
assert forked["session_id"] != ready["session_id"] and forked["model"] == "other/large", forked
assert abhed.prompt("go on").result(60)["answer"] == "gone on"
assert abhed.send("compact").result(60)["compacted"]["done"] is True

try:
    abhed.send("set_mode", mode="bypass").result(60)
    sys.exit("the mode was widened")
except AbhedError as error:
    assert error.code == "usage", error.reply
assert abhed.send("set_mode", mode="plan").result(60)["mode"] == "plan"
assert abhed.close() == 0
print("ok", ready["session_id"], forked["session_id"])
