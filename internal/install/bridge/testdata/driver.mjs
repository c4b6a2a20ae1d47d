// usage: node driver.mjs PLUGIN, and on standard input a list of calls [{hook, args}].
// It plays the host: it loads the plugin, makes the calls one after the other and
// prints what became of each, and what happened outside of them.
import { pathToFileURL } from "node:url"

const stray = []
process.on("unhandledRejection", (e) => stray.push("rejection: " + e))
process.on("uncaughtException", (e) => stray.push("exception: " + e))

process.stdin.setEncoding("utf8")
let text = ""
for await (const chunk of process.stdin) text += chunk
const calls = JSON.parse(text)

const module = await import(pathToFileURL(process.argv[2]))
const before = process.getActiveResourcesInfo().length
let hooks = {}
if (module.default) module.default({ on: (name, f) => (hooks[name] = f) })
else hooks = await Object.values(module)[0]({ directory: "/dir", worktree: "/tree" })
if (process.getActiveResourcesInfo().length !== before) stray.push("the initialiser started something")

const results = []
for (const { hook, args, frozen, circular } of calls) {
  const result = {}
  if (frozen) Object.freeze(hook === "tool_call" ? args[0].input : args[1].args)
  if (circular) args[0].self = args[0]
  if (hook.includes("_") || hook === "input") args[1] = { cwd: "/cwd", sessionManager: { getSessionId: () => "s1", getSessionFile: () => "/s1.json" } }
  const started = performance.now()
  try {
    result.returned = await hooks[hook](...args)
  } catch (e) {
    result.threw = e.message
  }
  result.ms = performance.now() - started
  if (circular) delete args[0].self
  result.args = args
  results.push(result)
}
// A handle that was closed is gone some turns of the loop later.
const left = () => process.getActiveResourcesInfo().filter((r) => r !== "TTYWrap" && r !== "PipeWrap" && r !== "Immediate")
for (const end = performance.now() + 5000; left().length > 0 && performance.now() < end; ) await new Promise((resolve) => setImmediate(resolve))
console.log(JSON.stringify({ hooks: Object.keys(hooks), results, stray, left: left() }))
