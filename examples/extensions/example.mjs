#!/usr/bin/env node
// What an extension can do, in JavaScript. The other examples do the same.
import { Extension } from "./abhed_ext.mjs";

const ext = new Extension();
const key = /AKIA[A-Z0-9]{16}/g;

ext.on("user_prompt_submit", ({ content }) => {
  if (content.includes("AKIA")) return { block: true, reason: "the message holds an access key; take it out and send it again" };
});

ext.on("before_agent_start", () => ({ system: "Run the tests before you say that you are done." }));

// Leave out whatever holds a private key.
ext.on("context", ({ messages }) => ({ keep: messages.filter((m) => !m.content.includes("PRIVATE KEY")).map((m) => m.index) }));

ext.on("tool_call", ({ tool, args }) => {
  const command = args.command ?? "";
  if (tool !== "bash") return;
  if (command.includes("rm -rf")) return { block: true, reason: "rm -rf isn't run here; name what is to go" };
  if (command.includes("git push")) return { ask: true, reason: "it publishes" };
  if (command.includes("http://")) return { args: { ...args, command: command.replaceAll("http://", "https://") } };
});

ext.on("tool_result", async ({ content }) => {
  const clean = content.replace(key, "[redacted]");
  if (clean !== content) return { content: clean };
});

ext.on("before_compact", ({ messages }) => {
  if (messages.some((m) => m.content.includes("keep the history"))) return { cancel: true };
  const asked = messages.filter((m) => m.role === "user").map((m) => "\n- " + m.content);
  return { summary: "What the person asked for:" + asked.join("") };
});

ext.on("turn_end", () => ({ log: "a turn has ended" }));

ext.tool(
  {
    name: "word_count", description: "Count the words of a text", mutates: false,
    schema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  },
  ({ text }) => {
    if (!text) throw new Error("there is no text to count in");
    return text.trim().split(/\s+/).length;
  },
);

await ext.run();
