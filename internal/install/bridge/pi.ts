
export default function (pi) {
  // The system prompt is long, and nothing reads it.
  const plain = ({ systemPrompt, systemPromptOptions, ...event }) => event
  const on = (hook, gate, apply) =>
    pi.on(hook, async (event, ctx) => {
      const v = await verdict(gate, () => ({
        bridge: parameters.version,
        hook,
        event: plain(event),
        ctx: { cwd: ctx.cwd, sessionId: ctx.sessionManager?.getSessionId?.(), sessionFile: ctx.sessionManager?.getSessionFile?.() },
      }))
      return apply(v, event, ctx)
    })
  const nothing = () => undefined

  on("tool_call", true, (v, event) => {
    const reason = before(v, event.input)
    return reason ? { block: true, reason } : undefined
  })
  on("tool_result", false, (v, event) => {
    const parts = Array.isArray(event.content) ? event.content : []
    const text = after(v, parts.map((part) => part?.text ?? "").join("\n"))
    return text === undefined ? undefined : { content: [{ type: "text", text }] }
  })
  on("before_agent_start", false, (v) => {
    const context = v.deliver?.context
    return Array.isArray(context) ? { message: { customType: "ahp", content: context.join("\n\n"), display: true } } : undefined
  })
  on("input", true, (v, event, ctx) => {
    const reason = v.deliver ? parameters.notApplied : v.deny
    if (!reason) return undefined
    try {
      ctx.ui?.notify?.(reason, "error")
    } catch {
      // Without a user interface nobody is told.
    }
    return { action: "handled" }
  })
  on("session_start", false, nothing)
  on("session_shutdown", false, nothing)
}
