// A client of `abhed rpc`, with no packages.
//
//   const abhed = new Abhed({onEvent: console.log});
//   await abhed.start({mode: "auto"});
//   const {answer} = await abhed.prompt("fix the failing tests");
//   await abhed.close();
//
// As a program it runs one prompt in the current folder, and asks on the terminal:
//
//   node client.mjs default "fix the failing tests"

import {spawn} from "node:child_process";
import {createInterface} from "node:readline/promises";
import {pathToFileURL} from "node:url";

// AbhedError is an error reply; code is for programs, reply holds all of it.
export class AbhedError extends Error {
  constructor(reply) {
    super(reply.error);
    this.code = reply.code;
    this.reply = reply;
  }
}

// Abhed is one session in a process of its own. onEvent gets the object of every event
// of the record, onDelta each piece of text as it arrives (start with deltas: true),
// onError the errors that belong to no request.
export class Abhed {
  #process;
  #waiting = new Map();
  #last = 0;
  #rest = [];
  #exit;

  constructor({command = ["abhed", "rpc"], onEvent, onDelta, onError, options = {}} = {}) {
    this.on = {event: (line) => onEvent?.(line.event), delta: onDelta, error: onError};
    this.#process = spawn(command[0], command.slice(1), {stdio: ["pipe", "pipe", "inherit"], ...options});
    this.#process.stdout.on("data", (bytes) => this.#read(bytes));
    this.#process.stdin.on("error", () => {}); // it has ended: that is noticed below
    this.#exit = new Promise((resolve) => {
      this.#process.on("error", (error) => this.#end(error.message, resolve));
      this.#process.on("close", (code) => this.#end("abhed ended before it answered", resolve, code));
    });
  }

  // send sends a request and returns a promise of its reply.
  send(method, fields = {}) {
    return new Promise((resolve, reject) => {
      if (this.#waiting === null) {
        reject(new AbhedError({code: "closed", error: "abhed has ended"}));
        return;
      }
      const id = ++this.#last;
      this.#waiting.set(id, {resolve, reject});
      this.#process.stdin.write(JSON.stringify({method, id, ...fields}) + "\n");
    });
  }

  // start opens the session: workspace, mode, model, allow, ask, deny, resume, fork_at,
  // approve, deltas.
  start(fields) { return this.send("start", fields); }

  prompt(text, attachments) { return this.send("prompt", {prompt: text, attachments}); }

  // steer reaches the running prompt's next model call ("steered"), or else the next
  // prompt ("queued").
  steer(text) { return this.send("steer", {prompt: text}); }

  interrupt() { return this.send("interrupt"); }

  // approve and deny answer an approval.requested event, of which question is the
  // payload.
  approve({request, hash}, {scope, comment} = {}) { return this.send("approve", {request, hash, scope, comment}); }

  deny({request, hash}, {comment} = {}) { return this.send("deny", {request, hash, comment}); }

  // answer answers a question.requested event, of which question is the payload, with
  // {text} or {content}; nothing declines.
  answer({request}, given = {decline: true}) { return this.send("answer", {request, ...given}); }

  // close ends the session, and returns the exit code of the process.
  close() {
    this.send("quit").catch(() => {});
    return this.#exit;
  }

  // #read cuts the stream at its line feeds. Node's own readline would also cut at
  // U+2028 and U+2029, which may stand in a string.
  #read(bytes) {
    for (let end; (end = bytes.indexOf(10)) >= 0; bytes = bytes.subarray(end + 1)) {
      this.#rest.push(bytes.subarray(0, end));
      const line = Buffer.concat(this.#rest).toString("utf8");
      this.#rest = [];
      this.#take(JSON.parse(line));
    }
    this.#rest.push(bytes);
  }

  #take(reply) {
    const request = this.#waiting.get(reply.id);
    if (request === undefined) {
      this.on[reply.type]?.(reply);
      return;
    }
    this.#waiting.delete(reply.id);
    if (reply.type === "error") {
      request.reject(new AbhedError(reply));
    } else {
      request.resolve(reply);
    }
  }

  #end(why, resolve, code) {
    const left = this.#waiting;
    this.#waiting = null;
    for (const request of left?.values() ?? []) {
      request.reject(new AbhedError({code: "closed", error: why}));
    }
    resolve(code);
  }
}

async function main(mode, prompt) {
  const ask = async (question) => {
    const terminal = createInterface({input: process.stdin, output: process.stderr});
    try {
      return await terminal.question(question);
    } finally {
      terminal.close();
    }
  };
  const abhed = new Abhed({
    async onEvent({type, payload}) {
      if (type === "approval.requested") {
        const yes = await ask(`${payload.tool} ${payload.args}\n  because: ${payload.why.join("; ")}\nrun it? [y/N] `);
        await (yes.trim() === "y" ? abhed.approve(payload) : abhed.deny(payload)).catch(console.error);
      } else if (type === "tool.ended") {
        console.error(`${payload.tool}: ${payload.outcome}`);
      }
    },
  });
  try {
    await abhed.start({mode, approve: "client"});
    console.log((await abhed.prompt(prompt)).answer);
  } catch (error) {
    console.error(`${error.code}: ${error.message}`);
    process.exitCode = 1;
  }
  await abhed.close();
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  if (process.argv.length !== 4) {
    console.error("usage: node client.mjs MODE PROMPT");
    process.exit(2);
  }
  await main(process.argv[2], process.argv[3]);
}
