package session

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/abhed/abhed/internal/chain"
	"github.com/abhed/abhed/internal/event"
)

// failer is what tests, fuzz targets and properties have in common.
type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

type loader = func(sum string, size int64) (string, error)

// blobsOf returns a loader of the blobs beside the record at path that reads each
// once.
func blobsOf(path string) loader {
	known := map[string]string{}
	return func(sum string, size int64) (string, error) {
		key := fmt.Sprint(sum, size)
		if s, ok := known[key]; ok {
			return s, nil
		}
		s, err := readBlob(blobDir(path), sum, size)
		if err == nil {
			known[key] = s
		}
		return s, err
	}
}

func noBlobs(string, int64) (string, error) { return "", nil }

// tampered writes content beside the blobs of the record at path and returns
// where.
func tampered(t testing.TB, path string, content []byte) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "abhed-tamper-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	to := filepath.Join(dir, filepath.Base(path))
	if err := os.WriteFile(to, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(blobDir(path)); err != nil {
		return to
	}
	if err := os.CopyFS(blobDir(to), os.DirFS(blobDir(path))); err != nil {
		t.Fatal(err)
	}
	return to
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// verifyBytes runs the verification over content without a file, since a test
// of every byte makes many.
func verifyBytes(t failer, content []byte, blobs loader, o VerifyOptions) *Report {
	t.Helper()
	v := newVerifier(o)
	s := newScanner(bytes.NewReader(content), blobs)
	for {
		it, err := s.next()
		if err == io.EOF {
			return v.finish()
		}
		if err != nil {
			t.Fatal(err)
		}
		v.item(&it)
	}
}

func TestAnyChangedByteIsFound(t *testing.T) {
	st := newStore(t, Options{})
	path := recordOf(t, st, conversation()...)
	good := read(t, path)
	keys, blobs := VerifyOptions{Keys: []chain.PublicKey{st.Key().Public()}}, blobsOf(path)
	if rep := verifyBytes(t, good, blobs, keys); !rep.OK {
		t.Fatalf("the record is not sound to begin with: %v", rep.Problems)
	}
	check := func(t failer, at int, with byte) {
		bad := slices.Clone(good)
		bad[at] ^= with
		rep := verifyBytes(t, bad, blobs, keys)
		line := 1 + bytes.Count(good[:at], []byte("\n"))
		if rep.OK || rep.Problems[0].Line != line {
			t.Fatalf("byte %d of line %d, %q made %q: problems %v", at, line, good[at], bad[at], rep.Problems)
		}
	}
	step := 3
	if raceDetector {
		step = 17
	}
	for at := 0; at < len(good); at += step { // a change that keeps most bytes printable
		check(t, at, 1)
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, rapid.IntRange(0, len(good)-1).Draw(t, "at"), byte(rapid.IntRange(1, 255).Draw(t, "xor")))
	})
}

func TestMovedLinesAreFound(t *testing.T) {
	st := newStore(t, Options{})
	path := record(t, st)
	good := bytes.SplitAfter(read(t, path), []byte("\n"))
	good = good[:len(good)-1]
	other := bytes.SplitAfter(read(t, record(t, st)), []byte("\n"))
	n := len(good)
	keys, blobs := VerifyOptions{Keys: []chain.PublicKey{st.Key().Public()}}, blobsOf(path)
	for name, c := range map[string]struct {
		lines [][]byte
		line  int
		what  string
	}{
		"dropped in the middle": {slices.Delete(slices.Clone(good), 4, 5), 5, "missing, inserted, repeated or moved"},
		"first dropped":         {good[1:], 1, "expected 1"},
		"swapped":               {swapped(good, 5, 6), 6, "missing, inserted, repeated or moved"},
		"repeated at once":      {slices.Insert(slices.Clone(good), 5, good[4]), 6, "stands in the record already"},
		"repeated at the end":   {append(slices.Clone(good), good[2]), n + 1, "stands in the record already"},
		"of another session":    {replaced(good, 5, other[5]), 6, "belongs to the session"},
		"other record behind":   {append(slices.Clone(good), other[0]), n + 1, "belongs to the session"},
		"empty line":            {slices.Insert(slices.Clone(good), 5, []byte("\n")), 6, "no event"},
		"carriage return":       {replaced(good, 5, bytes.Replace(good[5], []byte("\n"), []byte("\r\n"), 1)), 6, "no hash"},
		"zero bytes":            {slices.Insert(slices.Clone(good), 5, append(make([]byte, 500), '\n')), 6, "500 zero bytes"},
		"zero bytes on a line":  {replaced(good, 5, append(make([]byte, 500), good[5]...)), 6, "beside the event"},
		"cut within a line":     {append(slices.Clone(good[:n-1]), good[n-1][:100]), n, "cut off"},
		"line end cut":          {append(slices.Clone(good[:n-1]), bytes.TrimSpace(good[n-1])), n, "no line end"},
		"white space":           {replaced(good, 5, bytes.Replace(good[5], []byte(`,"seq"`), []byte(`, "seq"`), 1)), 6, ""},
		"nothing left":          {nil, 0, "no event"},
	} {
		t.Run(name, func(t *testing.T) {
			rep := verifyBytes(t, bytes.Join(c.lines, nil), blobs, keys)
			if rep.OK || rep.Problems[0].Line != c.line || c.what != "no hash" && !strings.Contains(rep.Problems[0].What, c.what) {
				t.Errorf("expected line %d, %q; problems %v", c.line, c.what, rep.Problems)
			}
		})
	}
	// Whole lines cut from the end: the chain can't tell, an anchored head can.
	cut := bytes.Join(good[:n-3], nil)
	rep := verifyBytes(t, cut, blobs, keys)
	if !rep.OK || rep.UnsignedTail == 0 {
		t.Errorf("cut at the end: %+v", rep)
	}
	full := verifyBytes(t, bytes.Join(good, nil), blobs, keys)
	anchored := keys
	anchored.Anchors = []chain.Head{full.SignedHead}
	if rep := verifyBytes(t, cut, blobs, anchored); rep.OK || !strings.Contains(rep.Problems[0].What, "cut off") {
		t.Errorf("cut below an anchor: %+v", rep)
	}
	if rep := verifyBytes(t, bytes.Join(good, nil), blobs, anchored); !rep.OK {
		t.Errorf("whole, with an anchor: %+v", rep)
	}
}

func swapped(lines [][]byte, i, j int) [][]byte {
	l := slices.Clone(lines)
	l[i], l[j] = l[j], l[i]
	return l
}

func replaced(lines [][]byte, i int, with []byte) [][]byte {
	l := slices.Clone(lines)
	l[i] = with
	return l
}

func TestReportIsBounded(t *testing.T) {
	rep := verifyBytes(t, bytes.Repeat([]byte("x\n"), maxProblems+7), noBlobs, VerifyOptions{})
	if n := len(rep.Problems); n != maxProblems+2 || !strings.HasPrefix(rep.Problems[n-2].What, "7 further") {
		t.Errorf("%d problems, at the end %v", n, rep.Problems[n-2:])
	}
}

func TestChangedBlobIsFound(t *testing.T) {
	st := newStore(t, Options{})
	path := record(t, st)
	blobs, err := filepath.Glob(filepath.Join(blobDir(path), "*"))
	if err != nil || len(blobs) != 1 {
		t.Fatalf("%v %v", err, blobs)
	}
	for name, change := range map[string]func() error{
		"changed": func() error { return os.WriteFile(blobs[0], bytes.ToUpper(read(t, blobs[0])), 0o600) },
		"longer":  func() error { return os.WriteFile(blobs[0], append(read(t, blobs[0]), 'x'), 0o600) },
		"removed": func() error { return os.Remove(blobs[0]) },
	} {
		was := read(t, blobs[0])
		if err := change(); err != nil {
			t.Fatal(err)
		}
		rep, err := Verify(path, st.Key().Public())
		if err != nil || rep.OK || !strings.Contains(rep.Problems[0].What, "stored text") {
			t.Errorf("%s: %v %+v", name, err, rep)
		}
		// The session can still be resumed, and says what is gone.
		s, _, info, err := st.Resume(path, ResumeOptions{})
		if err != nil || len(info.Skipped) != 1 || !strings.Contains(info.Skipped[0], "stored text") {
			t.Fatalf("%s: %v %+v", name, err, info)
		}
		s.Close()
		if err := os.WriteFile(blobs[0], was, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNoTamperingAddsAnEvent holds that whatever is done to the bytes, a reader
// gets events of the original record only, in order.
func TestNoTamperingAddsAnEvent(t *testing.T) {
	st := newStore(t, Options{})
	good := read(t, record(t, st))
	whole := map[int64]string{}
	s := newScanner(bytes.NewReader(good), noBlobs)
	for {
		it, err := s.next()
		if err != nil {
			break
		}
		whole[it.ev.Seq] = it.ev.Hash
	}
	rapid.Check(t, func(t *rapid.T) {
		b := slices.Clone(good)
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			at := rapid.IntRange(0, len(b)).Draw(t, "at")
			to := min(len(b), at+rapid.IntRange(0, 800).Draw(t, "len"))
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				b = slices.Delete(b, at, to)
			case 1:
				b = slices.Insert(b, at, slices.Clone(b[at:to])...)
			case 2:
				b = slices.Insert(b, at, rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "bytes")...)
			case 3:
				b = slices.Insert(b, at, make([]byte, to-at)...)
			}
		}
		s := newScanner(bytes.NewReader(b), noBlobs)
		last := int64(0)
		for {
			it, err := s.next()
			if err == io.EOF {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !it.accepted() {
				continue
			}
			if it.ev.Seq != last+1 || whole[it.ev.Seq] != it.ev.Hash {
				t.Fatalf("event %d with hash %s behind event %d", it.ev.Seq, it.ev.Hash, last)
			}
			last = it.ev.Seq
		}
	})
}

func FuzzScan(f *testing.F) {
	st := newStore(f, Options{})
	f.Add(read(f, record(f, st)))
	f.Add([]byte("\x00\x00{\"actor\":\n\n{\"actor\":{\"actor\":"))
	f.Fuzz(func(t *testing.T, content []byte) {
		rep := verifyBytes(t, content, noBlobs, VerifyOptions{Keys: []chain.PublicKey{st.Key().Public()}})
		s := newScanner(bytes.NewReader(content), noBlobs)
		var fold Fold
		events := int64(0)
		for {
			it, err := s.next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if it.accepted() {
				events++
				fold.Apply(it.ev)
			}
		}
		checkConversation(t, fold.State().Messages)
		if events != rep.Events {
			t.Fatalf("%d events read, %d verified", events, rep.Events)
		}
	})
}

// checkConversation fails unless each call is followed at once by its answer, in
// order.
func checkConversation(t failer, messages []*event.Message) {
	var open []string
	for i, m := range messages {
		if m.Role == event.RoleTool {
			if len(open) == 0 || len(m.Parts) != 1 || m.Parts[0].ToolResult == nil || m.Parts[0].ToolResult.CallID != open[0] {
				t.Fatalf("message %d answers %s, open are %v", i, fmt.Sprint(m.Parts), open)
			}
			open = open[1:]
			continue
		}
		if len(open) > 0 {
			t.Fatalf("message %d (%s) comes before the answers to %v", i, m.Role, open)
		}
		for _, c := range m.ToolCalls() {
			open = append(open, c.ID)
		}
	}
	if len(open) > 0 {
		t.Fatalf("no answers to %v", open)
	}
}
