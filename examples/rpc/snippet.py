# The smallest client: the three lines in the middle are all that it takes.
import json
import subprocess
from subprocess import PIPE


def send(**request):
    p.stdin.write(json.dumps(request) + "\n")
    p.stdin.flush()


p = subprocess.Popen(["abhed", "rpc"], stdin=PIPE, stdout=PIPE, text=True)
send(method="start", mode="auto")
send(method="prompt", prompt="fix the failing tests")
# every event the agent records arrives as {"type":"event", ...} while it works

for line in p.stdout:
    reply = json.loads(line)
    if reply["type"] == "event":
        print(reply["event"]["type"])
    elif reply["type"] in ("answer", "error"):
        print(reply["type"], reply)
        break

send(method="quit")
p.wait()
