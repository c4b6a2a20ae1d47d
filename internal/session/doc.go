// Package session keeps the record of a session: a file of chained, signed
// events (docs/decisions/0004-record-format.md), and the state that is a fold
// over them.
//
// It guarantees that an event that AppendDurable returned is on disk with every
// event before it, whatever happens to the process afterwards; that a session
// has one writer; that after a failed write nothing more is accepted, so that
// nothing acts on an event that isn't recorded; that no registered secret enters
// a file in plain, JSON-escaped, URL-encoded or base64 form; and that Resume
// takes over only what is chained to the first event, and says what it left out.
//
// Do not assume that Append has put anything on disk: its events are there once a
// later AppendDurable, Sign or Close returned. Do not assume that an event holds
// the text that was passed in: secrets and bytes that aren't UTF-8 are replaced
// before hashing, and the event that Append returns is what was recorded. Do not
// assume that the end of a file is authentic: behind the last signed head anybody
// who can write the file can add events or cut them off.
package session
