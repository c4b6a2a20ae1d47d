// Package policy holds the rules that judge a tool call, and the values that a
// judgement is made of.
//
// It guarantees that an Objection can't grant anything, that joining never
// lowers a Verdict, and that evaluating a call runs nothing: shell commands are
// parsed, paths are resolved, and that is all. A Ruleset is immutable and safe
// for concurrent use.
//
// Do not assume that "allow" here means a tool may run: the gate joins it with
// the objections of extensions and backends and issues the permit.
package policy
