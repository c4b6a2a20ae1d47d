// Package extension runs extensions: separate processes that speak JSON lines
// and may veto a tool call, never permit one (spec/extensions.md).
//
// It guarantees:
//   - what an extension says of a call arrives as a policy.Objection, a type that
//     has no value for "allow"; no reply makes any verdict less strict;
//   - a request is one line in which the text "event": occurs once, whatever the
//     call's arguments are named;
//   - every wait has an end: the extension's own time-out, counted from the moment
//     at which its request begins to be written, or the caller's context;
//   - an extension that crashes, hangs, or writes anything but exactly one JSON
//     object for each request is dead from then on, its process group is killed
//     and reaped, and its death is recorded with cause and the end of its standard
//     error; what it would have judged is treated by its OnFailure;
//   - answers don't depend on the order of the configuration, except for
//     ToolResult, where that order is the contract.
//
// The events that concern tool calls and the bounds of a session are here:
// list_tools, session_start, session_end, tool_call, permission_request,
// tool_result and invoke_tool. An extension may subscribe to the other events of
// the protocol, but this package doesn't send them.
//
// Do not assume that an extension is honest or quick, that two requests to it run
// at the same time (its stream is serial), or that its judging process and its
// tool process share anything.
package extension
