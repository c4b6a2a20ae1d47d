// Package config reads settings: it parses, checks, merges and explains them.
//
// It is pure data. Nothing here opens a file, reads a variable or asks the
// network: the bytes of every source are handed in, and the same sources give
// the same Settings and the same messages in the same order.
//
// It guarantees that:
//   - a settings file that isn't understood whole gives no Settings at all:
//     an unknown key, a wrong type, a value outside a closed set, a repeated
//     key or broken syntax is an *Error with file, line, column, what was found,
//     what was expected and the nearest known name. Every fault is reported at
//     once, never only the first;
//   - a managed deny rule, ask rule, mode, limit, sandbox tier or network
//     setting is never loosened by a lower layer (gate.md §3 and §4);
//   - a project file that nobody trusted can only make things stricter, and what
//     of it was ignored is listed;
//   - every value remembers where it came from (Origin), rule lists entry by
//     entry;
//   - the value of ABHED_API_KEY is never printed, encoded or formatted.
//
// Do not assume that a rule in Settings can be evaluated: only its outer shape
// is checked here, its tool and its pattern are internal/policy's. Do not assume
// that a file or program that a setting names exists, or that an endpoint
// answers. Settings are immutable after Load and safe for concurrent readers;
// nobody may write to their slices and maps.
package config
