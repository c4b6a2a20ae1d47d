package config

// Plain returns data, which may hold what a settings file may hold beyond JSON (a
// byte order mark, comments, trailing commas), with that overwritten by spaces, so
// that what is left is JSON and every offset is still right. If a comment is never
// closed, open is the offset where it starts, otherwise -1. It is for files that are
// written like settings and hold something else.
func Plain(data []byte) (plain []byte, open int) { return clean(data) }
