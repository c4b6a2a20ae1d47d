// Extensions of Abhed in JavaScript: one file for Node, no packages.
//
//   import { Extension } from "./abhed_ext.mjs";
//
//   const ext = new Extension();
//   ext.on("tool_call", (request) => {
//     if (request.tool === "bash" && request.args.command?.includes("rm -rf"))
//       return { block: true, reason: "not here" };
//   });
//   ext.tool({ name: "add", description: "Add two numbers", schema: {…}, mutates: false }, (args) => String(args.a + args.b));
//   await ext.run();
//
// A handler gets the request and returns the reply, or nothing for no opinion; it may
// be async. A tool gets its arguments and the request and returns its text; throwing
// makes the result an error. A handler that throws ends the extension: what that
// means is its on_failure, and guessing an answer would be worse.
//
// console.log is safe: it goes to standard error, and so to the log. Don't write to
// process.stdout yourself. Numbers beyond 2^53 lose digits in JavaScript, so don't
// send arguments back that you haven't changed.

import { Console } from "node:console";

const events = [
  "session_start", "session_end", "user_prompt_submit", "before_agent_start", "context", "tool_call",
  "permission_request", "tool_result", "before_compact", "turn_end", "subagent_end", "notification",
];

export class Extension {
  #handlers = new Map();
  #tools = new Map();

  /** on makes handler the one for an event. */
  on(event, handler) {
    if (!events.includes(event)) throw new Error(`there is no event "${event}"; the events are ${events.join(", ")}`);
    this.#handlers.set(event, handler);
    return this;
  }

  /** tool provides a tool: { name, description, schema, mutates }; mutates absent means that it does. */
  tool(offer, run) {
    this.#tools.set(offer.name, { offer, run });
    return this;
  }

  /** answer returns the reply to a request; run does this for each. */
  async answer(request) {
    if (request.event === "list_tools") return this.#tools.size ? { tools: [...this.#tools.values()].map((t) => t.offer) } : {};
    if (request.event === "invoke_tool") return this.#invoke(request);
    return (await this.#handlers.get(request.event)?.(request)) ?? {};
  }

  async #invoke(request) {
    try {
      return { result: String(await this.#tools.get(request.tool).run(request.args, request)) };
    } catch (failure) {
      console.error(failure);
      return { result: String(failure), is_error: true };
    }
  }

  /** run answers until the input ends. */
  async run() {
    globalThis.console = new Console(process.stderr, process.stderr);
    // Lines end at LF only. Node's readline also splits at U+2028, which a request may hold.
    let parts = [];
    for await (let chunk of process.stdin) {
      for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10)) {
        const line = Buffer.concat([...parts, chunk.subarray(0, end)]).toString("utf8");
        [parts, chunk] = [[], chunk.subarray(end + 1)];
        const reply = JSON.stringify(await this.answer(JSON.parse(line)));
        await new Promise((done) => process.stdout.write(reply + "\n", done));
      }
      parts.push(chunk);
    }
  }
}
