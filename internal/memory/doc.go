// Package memory finds the text that people keep for agents: instruction files
// (AGENTS.md and ABHED.md, in the roots and below them) and skills (folders with a
// SKILL.md).
//
// It guarantees that only regular files of valid UTF-8 text are taken, opened with no
// link followed after they were looked up; that a file of a workspace lies in it, a link
// that leads out being left out with a warning; that nothing is read which Denied names,
// under the name it has or the place it leads to; that every text and every count is
// bounded and what was cut is said; and that an instruction file is given to an agent
// once.
//
// Do not assume that the text is well meant: in a workspace it is whatever its authors
// wrote, and it can ask for anything. It grants nothing. Nor that what was read is
// still there.
package memory
