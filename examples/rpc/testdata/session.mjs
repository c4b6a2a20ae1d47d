// What the test has the Node client do: node session.mjs FOLDER COMMAND...
import assert from "node:assert/strict";
import {writeFileSync} from "node:fs";
import {join} from "node:path";
import {Abhed} from "../client.mjs";

const [folder, ...command] = process.argv.slice(2);
const seqs = [], steered = [], settled = [];
let text = "", answered = false, hangs;
const hanging = new Promise((resolve) => { hangs = resolve; });

const abhed = new Abhed({
  command,
  onDelta: (delta) => { text += delta.text; },
  async onEvent({seq, type, payload}) {
    seqs.push(seq);
    if (type === "approval.requested") {
      await assert.rejects(abhed.approve({...payload, hash: "0".repeat(64)}), {code: "usage"});
      settled.push((await abhed.approve(payload, {comment: "go on"})).type);
    } else if (type === "tool.started") {
      // The command waits for the file, so that this reaches the running prompt.
      settled.push((await abhed.steer("and be quick")).type);
      writeFileSync(join(folder, "go"), "");
    } else if (type === "user.message" && payload.steered) {
      steered.push(payload.text);
    } else if (type === "model.requested" && answered) {
      hangs();
    }
  },
});

const ready = await abhed.start({workspace: folder, mode: "default", approve: "client", deltas: true});
assert.equal(ready.type, "ready");
assert.equal(ready.protocol, 1);
assert.ok(ready.tools.includes("bash"));

const answer = await abhed.prompt("wait for it");
assert.deepEqual([answer.type, answer.answer, answer.reason], ["answer", "it is there \u2028 now", "completed"]);
assert.deepEqual(settled, ["settled", "steered"]);
assert.deepEqual(steered, ["and be quick"]);
assert.equal(text, answer.answer);

answered = true;
const second = abhed.prompt("hang");
await hanging;
assert.equal((await abhed.interrupt()).running, true);
await assert.rejects(second, (error) => error.code === "interrupted" && error.reply.reason === "user_interrupt");

assert.ok((await abhed.send("usage")).turns >= 2);
await assert.rejects(abhed.send("set_mode", {mode: "bypass"}));
assert.equal((await abhed.send("set_mode", {mode: "plan"})).mode, "plan");
assert.equal(await abhed.close(), 0);
assert.deepEqual(seqs, seqs.map((_, i) => i + 1));
console.log("ok", ready.session_id);
