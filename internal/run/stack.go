package run

// room is how large a stack Deep makes: what judges a command goes through a parser and
// several walks of what that returns.
const room = 100 << 10

// Deep calls f with a stack that is grown already, once, while there is next to nothing
// on it. A goroutine begins with some KiB and doubles them whenever they are used up,
// and each time all that is on the stack is copied and adjusted, frame by frame.
func Deep(f func()) {
	reserve(false)
	f()
}

// reserve has a frame of the size of room, of which nothing is touched.
//
//go:noinline
func reserve(use bool) {
	if use { // never; the array is in the frame all the same
		var frame [room]byte
		touch(&frame)
	}
}

//go:noinline
func touch(frame *[room]byte) { frame[0] = 1 }
