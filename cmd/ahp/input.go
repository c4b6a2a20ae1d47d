package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/ahpconfig"
)

// maxInput bounds a file that a command reads whole: a text of lines may hold
// several messages of the largest size.
const maxInput = 4 * ahp.MaxMessageBytes

// read returns the content of a file, or of standard input for "-". A file that
// isn't there is wrong use; anything else that keeps it from being read is an
// operational failure.
func (s system) read(path string) ([]byte, error) {
	if path == "-" {
		return bounded(s.stdin, "standard input")
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, failWith(exitUsage, err)
	}
	if err != nil {
		return nil, failWith(exitFailed, err)
	}
	defer f.Close()
	return bounded(f, path)
}

func bounded(r io.Reader, name string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	switch {
	case err != nil:
		return nil, failWith(exitFailed, fmt.Errorf("reading %s: %w", name, err))
	case len(data) > maxInput:
		return nil, failWith(exitUsage, fmt.Errorf("%s: found more than %d bytes, expected at most that", name, maxInput))
	}
	return data, nil
}

// wrong says that a file that was given isn't what it must be: with its line and
// column, if err knows the place.
func wrong(path string, data []byte, err error) error {
	return failWith(exitUsage, fmt.Errorf("%s: %s", ahpconfig.Place(path, data, err), strings.TrimPrefix(err.Error(), "ahp: ")))
}

// errLong is what eachLine gives for a line beyond the bound.
var errLong = fmt.Errorf("a line of more than %d bytes", maxLine)

// maxLine bounds a line of input: a request and its reply, and something more.
const maxLine = 2*ahp.MaxMessageBytes + 64<<10

// eachLine calls do for each line of r, without its line feed, numbered from 1,
// until do fails. An empty last line is none. A line beyond the bound is given as
// errLong without its text.
func eachLine(r io.Reader, do func(n int, line []byte, err error) error) error {
	in := bufio.NewReaderSize(r, 64<<10)
	for n := 1; ; n++ {
		line, long, err := readLine(in)
		if err != nil && !errors.Is(err, io.EOF) {
			return failWith(exitFailed, fmt.Errorf("reading standard input: %w", err))
		}
		end := err != nil
		if end && len(line) == 0 && !long {
			return nil
		}
		var fault error
		if long {
			line, fault = nil, errLong
		}
		if err := do(n, line, fault); err != nil {
			return err
		}
		if end {
			return nil
		}
	}
}

// readLine reads one line, and no more of it into memory than the bound.
func readLine(in *bufio.Reader) (line []byte, long bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if !long {
			line = append(line, part...)
		}
		if len(line) > maxLine {
			line, long = nil, true
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if n := len(line); err == nil && n > 0 {
			line = line[:n-1]
		}
		return line, long, err
	}
}
