
// append adds context to a prompt, as parts like the one that is there. It reports
// whether it did.
const append = (parts, context) => {
  try {
    if (!Array.isArray(context)) return false
    const like = parts.find((part) => part?.type === "text")
    const { id, sessionID, messageID } = like
    context.forEach((text, i) => parts.push({ id: id + "ahp" + i, sessionID, messageID, type: "text", text, synthetic: true }))
    return true
  } catch {
    return false
  }
}

export const AhpBridge = async (context) => {
  const document = (hook, input, output) => () => ({ bridge: parameters.version, hook, input, output, directory: context?.directory, worktree: context?.worktree })
  return {
    "tool.execute.before": async (input, output) => {
      const reason = before(await verdict(true, document("tool.execute.before", input, output)), output?.args)
      if (reason) throw new Error(reason)
    },
    "tool.execute.after": async (input, output) => {
      const text = after(await verdict(false, document("tool.execute.after", input, output)), output?.output ?? "")
      if (text === undefined) return
      try {
        // A result of an MCP server is as the server gave it.
        if (Array.isArray(output.content)) output.content = [{ type: "text", text }]
        if (!Array.isArray(output.content) || "output" in output) output.output = text
      } catch {
        throw new Error(text)
      }
    },
    "chat.message": async (input, output) => {
      const v = await verdict(true, document("chat.message", input, output))
      const reason = v.deliver && !append(output?.parts, v.deliver.context) ? parameters.notApplied : v.deny
      if (reason) throw new Error(reason)
    },
    event: async (input) => {
      const type = input?.event?.type
      if (type === "session.created" || type === "session.idle") await verdict(false, document("event", input))
    },
  }
}
