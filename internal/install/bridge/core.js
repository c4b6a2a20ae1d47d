import { spawn } from "node:child_process"

const isObject = (v) => typeof v === "object" && v !== null && !Array.isArray(v)

// ask gives ahp one document and resolves to its exit code and output, or to null if
// there is no answer. It never rejects, and nothing of it outlives the promise.
const ask = (make) =>
  new Promise((resolve) => {
    let child, timer, drain
    let size = 0
    const chunks = []
    const finish = (answer) => {
      clearTimeout(timer)
      clearTimeout(drain)
      child?.stdout?.destroy()
      resolve(answer)
    }
    try {
      const text = JSON.stringify(make())
      child = spawn(parameters.binary, parameters.args, { stdio: ["pipe", "pipe", "ignore"], detached: true, windowsHide: true })
      child.on("error", () => finish(null))
      child.stdin.on("error", () => {})
      child.stdout.on("error", () => {})
      timer = setTimeout(() => {
        try {
          process.kill(-child.pid, "SIGKILL")
        } catch {
          child.kill("SIGKILL")
        }
        finish(null)
      }, parameters.timerMS)
      child.stdout.on("data", (chunk) => {
        size += chunk.length
        if (size <= parameters.maxBytes) chunks.push(chunk)
      })
      const answer = (code) => finish(size > parameters.maxBytes ? null : { code, text: Buffer.concat(chunks).toString("utf8") })
      // All is written when ahp ends; a child that it left behind may hold the pipe.
      child.on("exit", (code) => {
        drain = setTimeout(() => answer(code), 1000)
      })
      child.on("close", (code) => answer(code))
      child.stdin.end(text)
    } catch {
      finish(null)
    }
  })

// verdict asks ahp about one event: {} to pass, {deliver} with what is to be done, or
// {deny} with the reason. Without an answer a gate follows the policy.
const verdict = async (gate, make) => {
  try {
    const answer = await ask(make)
    if (answer?.code === 40) return {}
    if (answer?.code === 41) {
      const deliver = JSON.parse(answer.text)
      if (isObject(deliver) && Object.keys(deliver).length > 0) return { deliver }
    }
    if (answer?.code === 42) {
      const { reason } = JSON.parse(answer.text)
      if (typeof reason === "string" && reason.trim() !== "") return { deny: reason }
    }
  } catch {
    // What can't be read is no answer.
  }
  return gate && parameters.onMissing !== "allow" ? { deny: parameters.noAnswer } : {}
}

// rewrite makes a call's arguments those of ahp, in place: the host looks at no other
// object. It reports whether they are.
const rewrite = (target, args) => {
  try {
    if (!isObject(target) || !isObject(args)) return false
    for (const key of Object.keys(target)) if (!Object.hasOwn(args, key)) delete target[key]
    for (const key of Object.keys(args)) Object.defineProperty(target, key, { value: args[key], writable: true, enumerable: true, configurable: true })
    return true
  } catch {
    return false
  }
}

// before is the reason not to make a call, or undefined; a rewrite is made on the way.
const before = (v, target) => (v.deliver && !rewrite(target, v.deliver.args) ? parameters.notApplied : v.deny)

// after is the text that takes the place of a result, or undefined.
const after = (v, text) => {
  if (v.deny) return v.deny
  let out = typeof v.deliver?.output === "string" ? v.deliver.output : undefined
  if (Array.isArray(v.deliver?.context)) out = [out ?? text, ...v.deliver.context].join("\n\n")
  return out
}
