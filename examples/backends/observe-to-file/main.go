// Command observe-to-file is a backend that appends every event that it is told of to
// a file, one a line. For a log whose lines can't be changed unnoticed see ahp backend
// log.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: observe-to-file FILE")
		os.Exit(2)
	}
	file, err := os.OpenFile(os.Args[1], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	backend.Main(&backend.Handlers{Seen: func(_ context.Context, e *ahp.Event) {
		line, err := e.Encode()
		if err == nil {
			_, err = file.Write(append(line, '\n'))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err) // an observer can't change anything, so it can only tell
		}
	}}, backend.Options{})
}
