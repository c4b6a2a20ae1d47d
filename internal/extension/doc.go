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
//     ToolResult and for the order of what AgentStart appends, where that order is
//     the contract;
//   - one extension is sent its events in the order in which the host was called for
//     them, and what only observes (TurnEnd, SubagentEnd, Notification) holds nobody
//     up who doesn't ask the same extension something afterwards;
//   - what a filter drops isn't sent because another one would keep it, or because it
//     died: see Context and OnFailure.
//
// Test tries one extension out, for its author.
//
// Do not assume that an extension is honest or quick, that two requests to it run
// at the same time (its stream is serial), or that its judging process and its
// tool process share anything.
package extension
