"""A client of `abhed rpc`, with nothing but the standard library.

    with Abhed(on_event=print) as abhed:
        abhed.start(mode="auto").result()
        answer = abhed.prompt("fix the failing tests").result()
        print(answer["answer"])

Every method returns a Future: what is said to Abhed never waits. So a callback may
call them too, as long as it doesn't wait for the result: the replies are read by the
thread that the callbacks run in.

As a program it runs one prompt in the current folder, and asks on the terminal:

    python3 client.py --mode default "fix the failing tests"
"""

import argparse
import concurrent.futures
import itertools
import json
import subprocess
import sys
import threading


class AbhedError(Exception):
    """An error reply. `code` is for programs, `reply` holds all of it."""

    def __init__(self, reply):
        super().__init__(reply["error"])
        self.code = reply["code"]
        self.reply = reply


class Abhed:
    """One session in a process of its own.

    on_event gets the object of every event of the record, on_delta each piece of text
    as it arrives (start with deltas=True), on_error the errors that belong to no
    request.
    """

    def __init__(self, command=("abhed", "rpc"), on_event=None, on_delta=None, on_error=None, **popen):
        self._on = {"event": on_event, "delta": on_delta, "error": on_error}
        self._waiting = {}
        self._lock = threading.Lock()
        self._ids = itertools.count(1)
        # Bytes, not text: lines end at LF alone, and are UTF-8 whatever the locale is.
        self._process = subprocess.Popen(list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, **popen)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def send(self, method, **fields):
        """Sends a request; fields that are None are left out. Returns its Future."""
        future = concurrent.futures.Future()
        id = next(self._ids)
        request = {"method": method, "id": id}
        request.update((name, value) for name, value in fields.items() if value is not None)
        line = json.dumps(request).encode() + b"\n"
        with self._lock:
            if self._waiting is None:
                future.set_exception(AbhedError({"code": "closed", "error": "abhed has ended"}))
                return future
            self._waiting[id] = future
            try:
                self._process.stdin.write(line)
                self._process.stdin.flush()
            except (BrokenPipeError, ValueError):
                pass  # it has ended: the reader notices, and answers everything
        return future

    def start(self, **fields):
        """Opens the session: workspace, mode, model, allow, ask, deny, resume, fork_at, approve, deltas."""
        return self.send("start", **fields)

    def prompt(self, text, attachments=None):
        return self.send("prompt", prompt=text, attachments=attachments)

    def steer(self, text):
        """Reaches the running prompt's next model call ("steered"), or else the next prompt ("queued")."""
        return self.send("steer", prompt=text)

    def interrupt(self):
        return self.send("interrupt")

    def approve(self, question, scope=None, comment=None):
        """Answers an approval.requested event, of which question is the payload."""
        return self.send("approve", request=question["request"], hash=question["hash"], scope=scope, comment=comment)

    def deny(self, question, comment=None):
        return self.send("deny", request=question["request"], hash=question["hash"], comment=comment)

    def answer(self, question, text=None, content=None):
        """Answers a question.requested event, of which question is the payload; nothing declines."""
        decline = True if text is None and content is None else None
        return self.send("answer", request=question["request"], text=text, content=content, decline=decline)

    def close(self):
        """Ends the session, and returns the exit code of the process."""
        self.send("quit")
        code = self._process.wait()
        self._reader.join()
        self._process.stdin.close()
        self._process.stdout.close()
        return code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _read(self):
        try:
            for line in self._process.stdout:
                self._take(json.loads(line))
        finally:
            with self._lock:
                left, self._waiting = self._waiting, None
            for future in left.values():
                future.set_exception(AbhedError({"code": "closed", "error": "abhed ended before it answered"}))

    def _take(self, reply):
        with self._lock:
            future = self._waiting.pop(reply.get("id"), None)
        if future is None:
            callback = self._on.get(reply["type"])
            if callback is not None:
                callback(reply["event"] if reply["type"] == "event" else reply)
        elif reply["type"] == "error":
            future.set_exception(AbhedError(reply))
        else:
            future.set_result(reply)


def main():
    arguments = argparse.ArgumentParser(description="Run one prompt in the current folder.")
    arguments.add_argument("--mode", help="permission mode: plan, default, accept-edits, auto or bypass")
    arguments.add_argument("prompt")
    arguments = arguments.parse_args()

    def on_event(event):
        payload = event["payload"]
        if event["type"] == "approval.requested":
            print(f"\n{payload['tool']} {payload['args']}\n  because: {'; '.join(payload['why'])}", file=sys.stderr)
            if input("run it? [y/N] ").strip() == "y":
                abhed.approve(payload)
            else:
                abhed.deny(payload)
        elif event["type"] == "tool.ended":
            print(f"{payload['tool']}: {payload['outcome']}", file=sys.stderr)

    with Abhed(on_event=on_event) as abhed:
        try:
            abhed.start(mode=arguments.mode, approve="client").result()
            print(abhed.prompt(arguments.prompt).result()["answer"])
        except AbhedError as error:
            sys.exit(f"{error.code}: {error}")


if __name__ == "__main__":
    main()
