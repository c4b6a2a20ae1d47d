package memory

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/workspace"
)

// denied says whether a path may not be read; nil denies nothing.
type denied func(path string) bool

func (d denied) has(path string) bool { return d != nil && d(path) }

// absent is why there is nothing to read, and nothing to say of it.
type absent struct{}

func (absent) Error() string { return "there is no such file" }

// place looks a file up and returns where it lies. given may lead through links, but
// not out of the folder within, which has none.
func place(within, given string, d denied) (policy.Place, error) {
	forms, err := policy.Resolve(within, given, "")
	if err != nil {
		return policy.Place{}, err
	}
	at := forms.Place.Path
	switch {
	case !inside(at, within):
		return policy.Place{}, fmt.Errorf("it leads to %s, which lies outside %s; replace the link by the file", at, within)
	case d.has(forms.Absolute) || d.has(at):
		return policy.Place{}, fmt.Errorf("a rule denies reading it")
	}
	info, err := workspace.Stat(forms.Place)
	switch {
	case err != nil:
		return policy.Place{}, err
	case info.Kind == workspace.Missing:
		return policy.Place{}, absent{}
	case info.Kind != workspace.Regular:
		return policy.Place{}, fmt.Errorf("it is a %s, not a file", info.What)
	}
	return forms.Place, nil
}

// text returns the begin of a file, at most limit bytes of it, and what was cut in
// words, or "". Behind the limit it isn't looked at.
func text(at policy.Place, limit int) (body, note string, err error) {
	f, info, err := workspace.Open(at)
	if err != nil {
		return "", "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err != nil {
		return "", "", err
	}
	size := max(info.Size, int64(len(data)))
	if len(data) > limit {
		data = wholeRunes(data[:limit])
		note = fmt.Sprintf("cut after %d of %d bytes", len(data), size)
	}
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return "", "", fmt.Errorf("it is not a text file: it holds a NUL byte at offset %d (%d bytes, %s)", i, size, http.DetectContentType(data))
	}
	if !utf8.Valid(data) {
		return "", "", fmt.Errorf("it is not valid UTF-8 (%d bytes); save it as UTF-8", size)
	}
	return strings.TrimPrefix(string(data), "\uFEFF"), note, nil
}

// wholeRunes drops the begin of a character at the end.
func wholeRunes(data []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(data); i++ {
		if b := data[len(data)-i:]; utf8.RuneStart(b[0]) {
			if !utf8.FullRune(b) {
				return data[:len(data)-i]
			}
			break
		}
	}
	return data
}

// inside reports whether a clean path is dir or lies in it.
func inside(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
