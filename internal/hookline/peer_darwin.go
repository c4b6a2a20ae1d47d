package hookline

// ownProgram trusts the socket's owner and modes: which program serves can't be told
// here.
func ownProgram(int, *Identity) error { return nil }
