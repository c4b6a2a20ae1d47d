package session

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/internal/chain"
	"github.com/abhed/abhed/internal/event"
)

func lines(b []byte) [][]byte {
	l := bytes.SplitAfter(b, []byte("\n"))
	return l[:len(l)-1]
}

// resumeOf resumes content as a record of st, appends to it, closes it, and
// returns what was found and the verification of the result.
func resumeOf(t *testing.T, st *Store, path string, content []byte, o ResumeOptions) (*State, ResumeInfo, *Report, error) {
	t.Helper()
	to := tampered(t, path, content)
	s, state, info, err := st.Resume(to, o)
	if err != nil {
		if now := read(t, to); !bytes.Equal(now, content) {
			t.Error("a resume that failed changed the record")
		}
		return nil, info, nil, err
	}
	e, err := s.AppendDurable(draft(info.Resumed(*started())))
	if err != nil {
		t.Fatal(err)
	}
	if p := e.Payload.(*event.SessionResumed); p.UnsignedTail != info.UnsignedTail || p.AcceptedBroken != info.AcceptedBroken {
		t.Errorf("recorded %+v, found %+v", p, info)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	rep, err := Verify(to, st.Key().Public())
	if err != nil {
		t.Fatal(err)
	}
	if rep.UnsignedTail != 0 {
		t.Errorf("%d events are unsigned after a close", rep.UnsignedTail)
	}
	return state, info, rep, nil
}

func TestResume(t *testing.T) {
	st := newStore(t, Options{})
	path := record(t, st)
	state, info, rep, err := resumeOf(t, st, path, read(t, path), ResumeOptions{})
	if err != nil || !rep.OK {
		t.Fatalf("%v %+v", err, rep)
	}
	if d := cmp.Diff(ResumeInfo{}, info); d != "" {
		t.Errorf("a sound record has %s", d)
	}
	if state.WorkDir != "/w/sub" || state.LastMode != "auto" || !state.Ended || state.Reason != "completed" || state.Turns != 1 || len(state.Messages) != 5 {
		t.Errorf("%+v", state)
	}
	// The arguments that the model broke are kept as it wrote them.
	if args := state.Messages[1].ToolCalls()[1].Args; args != `{"a":"b` {
		t.Errorf("arguments %q", args)
	}
	if text := state.Messages[0].Text(); text != "line\u2028separator \x7f and \"quotes\"" {
		t.Errorf("text %q", text)
	}
}

func TestResumeLongText(t *testing.T) {
	st := newStore(t, Options{})
	long := strings.Repeat("0123456789abcde\n", 10_000)
	path := recordOf(t, st, calls("a"), ended("a", long))
	if b := read(t, path); len(b) > 5000 || !bytes.Contains(b, []byte(`{"$blob":{"sha256":"`)) {
		t.Errorf("the file has %d bytes", len(b))
	}
	state, _, _, err := resumeOf(t, st, path, read(t, path), ResumeOptions{})
	if err != nil || state.Messages[1].Parts[0].ToolResult.Content != long {
		t.Errorf("%v: another text came back", err)
	}
}

// TestResumeCutAnywhere cuts a record at every byte of its last event.
func TestResumeCutAnywhere(t *testing.T) {
	st := newStore(t, Options{NoSync: true})
	path := recordOf(t, st, &event.UserMessage{Text: "hello"}, &event.UserMessage{Text: "last"})
	b := read(t, path)
	l := lines(b)
	l = l[:len(l)-2] // without the end of the session and its signature
	b = bytes.Join(l, nil)
	start := len(b) - len(l[len(l)-1])
	for at := start; at <= len(b); at++ {
		state, info, rep, err := resumeOf(t, st, path, b[:at], ResumeOptions{})
		if err != nil || !rep.OK {
			t.Fatalf("cut at %d of %d: %v %+v", at, len(b), err, rep)
		}
		want := bytes.Count(b[:at], []byte("\n"))
		whole := slices.ContainsFunc([]int{len(l) - 1, len(l)}, func(n int) bool {
			return at == len(bytes.Join(l[:n], nil)) || at == len(bytes.Join(l[:n], nil))-1
		})
		if (info.Repaired > 0) == whole {
			t.Errorf("cut at %d of %d: %d bytes repaired", at, len(b), info.Repaired)
		}
		if len(state.Messages) < 1 || int(rep.Events) < want+2 {
			t.Errorf("cut at %d of %d: %d events of %d, %d messages", at, len(b), rep.Events, want, len(state.Messages))
		}
	}
}

func TestResumeRepairIsRecorded(t *testing.T) {
	st := newStore(t, Options{})
	path := record(t, st)
	torn := []byte(`{"actor":"user","hash":"00`)
	to := tampered(t, path, append(read(t, path), torn...))
	s, _, info, err := st.Resume(to, ResumeOptions{})
	if err != nil || info.Repaired != int64(len(torn)) {
		t.Fatalf("%v %+v", err, info)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	found := false
	problems, err := Read(to, func(e event.Event) error {
		if p, ok := e.Payload.(*event.RecordRepaired); ok {
			found = p.DroppedBytes == int64(len(torn)) && len(p.DroppedHash) == 64
		}
		return nil
	})
	if err != nil || len(problems) > 0 || !found {
		t.Errorf("%v %v; repair recorded: %v", err, problems, found)
	}
}

func TestResumePassesOver(t *testing.T) {
	st := newStore(t, Options{})
	path := record(t, st)
	b := read(t, path)
	l := lines(b)
	zeros := make([]byte, 500)
	for name, c := range map[string]struct {
		content  []byte
		skipped  string
		repaired int64
	}{
		"zero bytes on a line of their own": {bytes.Join(slices.Insert(slices.Clone(l), 5, append(zeros, '\n')), nil), "line 6", 0},
		"zero bytes before an event":        {bytes.Join(replaced(l, 5, append(slices.Clone(zeros), l[5]...)), nil), "line 6", 0},
		"zero bytes at the end":             {append(slices.Clone(b), zeros...), "", 500},
		"half an event, then the whole":     {bytes.Join(replaced(l, 5, append(slices.Clone(l[5][:80]), l[5]...)), nil), "line 6", 0},
		"an event twice":                    {bytes.Join(slices.Insert(slices.Clone(l), 6, l[5]), nil), "line 7", 0},
		"all events twice":                  {append(slices.Clone(b), b...), fmt.Sprintf("line %d", len(l)+1), 0},
		"an empty line":                     {bytes.Join(slices.Insert(slices.Clone(l), 5, []byte("\n")), nil), "line 6", 0},
		"no last line end":                  {b[:len(b)-1], "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			state, info, rep, err := resumeOf(t, st, path, c.content, ResumeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if len(state.Messages) != 5 || int(rep.Events) < len(l)+2 || info.Repaired != c.repaired {
				t.Errorf("%d messages, %d events, %+v", len(state.Messages), rep.Events, info)
			}
			if c.skipped == "" && len(info.Skipped) > 0 || c.skipped != "" && (len(info.Skipped) == 0 || !strings.HasPrefix(info.Skipped[0], c.skipped+" ")) {
				t.Errorf("skipped %q, expected %q", info.Skipped, c.skipped)
			}
		})
	}
}

func TestResumeUnsignedTail(t *testing.T) {
	st := newStore(t, Options{})
	path := record(t, st)
	l := lines(read(t, path))
	// As a kill leaves it: the head of the first event is signed, nothing after.
	n := slices.IndexFunc(l, func(b []byte) bool { return bytes.Contains(b, []byte(`"type":"tool.started"`)) }) + 1
	state, info, rep, err := resumeOf(t, st, path, bytes.Join(l[:n], nil), ResumeOptions{})
	if err != nil || !rep.OK {
		t.Fatalf("%v %+v", err, rep)
	}
	if info.UnsignedTail != int64(n-2) || info.AcceptedUnsigned || fmt.Sprint(info.Interrupted) != "[c1 c2]" {
		t.Errorf("%+v", info)
	}
	checkConversation(t, state.Messages)
}

func TestResumeRefusesWhatNobodySigned(t *testing.T) {
	st := newStore(t, Options{})
	path := record(t, st)
	l := lines(read(t, path))
	content := l[0]
	var re *RefusedError
	if _, _, _, err := resumeOf(t, st, path, content, ResumeOptions{AcceptBroken: true}); !errors.As(err, &re) || !re.Unsigned || !strings.Contains(err.Error(), "--accept-unsigned") {
		t.Fatalf("%v", err)
	}
	_, info, rep, err := resumeOf(t, st, path, content, ResumeOptions{AcceptUnsigned: true})
	if err != nil || !rep.OK || !info.AcceptedUnsigned || info.UnsignedTail != 1 {
		t.Fatalf("%v %+v %+v", err, info, rep)
	}
}

func TestResumeBrokenChain(t *testing.T) {
	st := newStore(t, Options{})
	path := record(t, st)
	l := lines(read(t, path))
	content := bytes.Join(replaced(l, 4, bytes.Replace(l[4], []byte("let me see"), []byte("let me lie"), 1)), nil)
	var re *RefusedError
	_, _, _, err := resumeOf(t, st, path, content, ResumeOptions{AcceptUnsigned: true})
	if !errors.As(err, &re) || re.Unsigned || re.Broken[0].Line != 5 || !strings.Contains(err.Error(), "--accept-broken") {
		t.Fatalf("%v", err)
	}
	to := tampered(t, path, content)
	for round := range 3 {
		// Accepted once and recorded, it is not asked about again.
		s, state, info, err := st.Resume(to, ResumeOptions{AcceptBroken: round == 0})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if (info.AcceptedBroken != "") != (round == 0) || round > 0 && len(info.Skipped) == 0 {
			t.Errorf("round %d: %+v", round, info)
		}
		if text := show(state.Messages); strings.Contains(text, "let me") || !strings.HasPrefix(text, "user: line") {
			t.Errorf("round %d: what isn't chained came in: %s", round, text)
		}
		mustAppend(t, s, info.Resumed(*started()))
		mustAppend(t, s, &event.UserMessage{Text: "on we go"})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	rep, err := Verify(to, st.Key().Public())
	if err != nil || rep.OK || rep.Problems[0].Line != 5 || rep.UnsignedTail != 0 {
		t.Errorf("%v %+v", err, rep)
	}
}

func TestResumeNothing(t *testing.T) {
	st := newStore(t, Options{})
	path := record(t, st)
	for name, content := range map[string]string{"empty": "", "torn first line": `{"actor":`, "zero bytes": "\x00\x00"} {
		if _, _, _, err := resumeOf(t, st, path, []byte(content), ResumeOptions{AcceptUnsigned: true, AcceptBroken: true}); err == nil || !strings.Contains(err.Error(), "nothing to resume") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, _, err := resumeOf(t, st, path, []byte("garbage\n"), ResumeOptions{AcceptUnsigned: true, AcceptBroken: true}); err == nil || !strings.Contains(err.Error(), "nothing to resume") {
		t.Errorf("%v", err)
	}
}

func TestResumeWithUnknownTypes(t *testing.T) {
	st := newStore(t, Options{})
	path := recordOf(t, st, &event.UserMessage{Text: "u"}, &event.Unknown{Kind: "from.the.future", Body: event.Raw(`{"$blob":1,"x":[]}`)})
	state, info, rep, err := resumeOf(t, st, path, read(t, path), ResumeOptions{})
	if err != nil || !rep.OK || len(state.Messages) != 1 || len(info.Skipped) != 0 {
		t.Errorf("%v %+v %+v", err, rep, info)
	}
}

// TestResumeWithOtherPayload resumes past an event whose payload another version
// writes differently.
func TestResumeWithOtherPayload(t *testing.T) {
	st := newStore(t, Options{})
	path := recordOf(t, st, &event.UserMessage{Text: "u"}, &event.Notice{Level: "info", Text: "n"})
	l := lines(read(t, path))
	n := slices.IndexFunc(l, func(b []byte) bool { return bytes.Contains(b, []byte(`"type":"notice"`)) }) + 1
	content := forge(t, l[:n], n, func(_ int, s string) string { return strings.Replace(s, `"level":"info"`, `"level":{"n":3}`, 1) })
	state, info, _, err := resumeOf(t, st, path, content, ResumeOptions{})
	if err != nil || len(state.Messages) != 1 || len(info.Skipped) != 1 || !strings.Contains(info.Skipped[0], "/payload/level") {
		t.Errorf("%v %+v", err, info)
	}
}

func TestFindAndList(t *testing.T) {
	st := newStore(t, Options{})
	rootA, rootB := t.TempDir(), t.TempDir()
	add := func(root, id, title string) string {
		s, err := st.Create(root, CreateOptions{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		start := started()
		start.Workspace = root
		mustAppend(t, s, start)
		mustAppend(t, s, &event.UserMessage{Text: title + "\nmore"})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return s.Path()
	}
	a1, a2, b1 := add(rootA, "aaa-1", "first"), add(rootA, "aaa-2", "second"), add(rootB, "aaa-22", "third")
	now := time.Now()
	for i, p := range []string{a1, b1, a2} {
		if err := os.Chtimes(p, now, now.Add(time.Duration(i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"aaa-1": a1, "aaa-2": a2, "aaa-22": b1, a1: a1} {
		if got, err := st.Find(name); err != nil || got != want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	for name, matches := range map[string]int{"aaa": 3, "zzz": 0, "": 0, "*": 0, "../x": 0, filepath.Dir(a1): 0, a1 + "x": 0, a1 + "/../../key": 0} {
		var nf *NotFoundError
		if _, err := st.Find(name); !errors.As(err, &nf) || len(nf.Matches) != matches {
			t.Errorf("%q: %v", name, err)
		}
	}
	ids := func(infos []Info, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		s := ""
		for _, i := range infos {
			if i.Created.IsZero() || i.Size == 0 || i.Model != "m" {
				t.Errorf("%+v", i)
			}
			s += i.ID + "=" + i.Title + " "
		}
		return s
	}
	if got := ids(st.List()); got != "aaa-2=second aaa-22=third aaa-1=first " {
		t.Error(got)
	}
	if got := ids(st.ListWorkspace(rootA)); got != "aaa-2=second aaa-1=first " {
		t.Error(got)
	}
}

func TestDefaultDir(t *testing.T) {
	t.Setenv("HOME", "/home/u")
	for env, want := range map[string]string{"/state": "/state/abhed", "": "/home/u/.local/state/abhed", "relative": "/home/u/.local/state/abhed"} {
		t.Setenv("XDG_STATE_HOME", env)
		if got, err := DefaultDir(); err != nil || got != want {
			t.Errorf("%q: %s, %v", env, got, err)
		}
	}
}

// TestLargeRecord opens 50 MB with one line of 5 MB.
func TestLargeRecord(t *testing.T) {
	if testing.Short() || raceDetector {
		t.Skip("a large file, read by one goroutine")
	}
	st := newStore(t, Options{NoSync: true})
	s := create(t, st)
	mustAppend(t, s, started())
	items := "[" + strings.Repeat(`"some short text",`, 5<<20/18) + `"end"]`
	mustAppend(t, s, &event.RulesSet{Rules: event.Raw(items)})
	text := strings.Repeat("0123456789", 6000)
	for range 750 {
		if _, err := s.Append(draft(&event.UserMessage{Text: text})); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(s.Path())
	if err != nil || fi.Size() < 50_000_000 {
		t.Fatalf("%v, %d bytes", err, fi.Size())
	}
	start := time.Now()
	r, state, info, err := st.Resume(s.ID(), ResumeOptions{})
	if err != nil || len(state.Messages) != 750 || len(info.Skipped) > 0 {
		t.Fatalf("%v %+v", err, info)
	}
	t.Logf("%d bytes resumed in %v", fi.Size(), time.Since(start))
	r.Close()
}

func TestReaderStopsAndReports(t *testing.T) {
	st := newStore(t, Options{})
	path := record(t, st)
	stop := errors.New("enough")
	n := 0
	if _, err := Read(path, func(event.Event) error { n++; return stop }); !errors.Is(err, stop) || n != 1 {
		t.Errorf("%v after %d", err, n)
	}
	if _, err := Read(path+"x", nil); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := Verify(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	rep, err := Verify(path)
	if err != nil || !rep.OK || rep.SignedHead != (chain.Head{}) || rep.UnsignedTail != rep.Events || len(rep.OtherKeys) != 1 {
		t.Errorf("without keys: %v %+v", err, rep)
	}
}
