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
  onDelta(delta) {
    if (delta.kind === "text" && answered) {
      hangs();
    } else if (delta.kind === "text") {
      text += delta.text;
    }
  },
  async onEvent({seq, type, payload}) {
    seqs.push(seq);
    if (type === "approval.requested") {
      await assert.rejects(abhed.approve({...payload, hash: "0".repeat(64)}), {code: "usage"});
      settled.push((await abhed.approve(payload, {comment: "go on"})).type);
    } else if (type === "tool.started" && !answered) {
      // The command waits for the file, so that this reaches the running prompt.
      settled.push((await abhed.steer("and be quick")).type);
      writeFileSync(join(folder, "go"), "");
    } else if (type === "user.message" && payload.steered) {
      steered.push(payload.text);
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

const usage = await abhed.send("usage");
assert.ok(usage.turns >= 2 && usage.tokens.input > 0);
const {tools} = await abhed.send("tools");
assert.deepEqual(tools.map(({name}) => name).sort(), [...ready.tools].sort());

// A command in the background outlives its prompt.
assert.equal((await abhed.prompt("begin a job")).answer, "it runs");
let [task] = (await abhed.send("tasks")).tasks;
assert.deepEqual([task.kind, task.state], ["command", "running"]);
assert.equal((await abhed.send("cancel_task", {task_id: task.task_id})).type, "cancelled");
[task] = (await abhed.send("tasks")).tasks;
assert.notEqual(task.state, "running");

assert.ok((await abhed.send("providers")).providers.length > 1);
assert.equal((await abhed.send("set_model", {model: "other/large"})).model, "other/large");
assert.equal((await abhed.prompt("who are you?")).answer, "the other one");
const lines = (await abhed.send("export")).content.trimEnd().split("\n");
assert.deepEqual(seqs, seqs.map((_, i) => i + 1));
assert.ok(lines.length >= seqs.length);
assert.ok((await abhed.send("export", {format: "html"})).content.startsWith("<!doctype html>"));

const forked = await abhed.send("fork");
assert.notEqual(forked.session_id, ready.session_id);
assert.equal(forked.model, "other/large");
assert.equal((await abhed.prompt("go on")).answer, "gone on");
assert.equal((await abhed.send("compact")).compacted.done, true);

await assert.rejects(abhed.send("set_mode", {mode: "bypass"}), {code: "usage"});
assert.equal((await abhed.send("set_mode", {mode: "plan"})).mode, "plan");
assert.equal(await abhed.close(), 0);
console.log("ok", ready.session_id, forked.session_id);
