package chain

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/abhed/abhed/internal/strictjson"
)

// logOf seals objects, of which each %d is the number and %s the previous hash.
func logOf(t testing.TB, objects ...string) [][]byte {
	t.Helper()
	var lines [][]byte
	prev := ""
	for i, o := range objects {
		line, hash, err := Seal([]byte(fmt.Sprintf(o, i+1, prev)))
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, append(line, '\n'))
		prev = hash
	}
	return lines
}

func sampleLog(t testing.TB) [][]byte {
	return logOf(t,
		`{"seq": %d, "prev": "%s", "host":"h", "a":{"hash":"inner","n":1.50}}`,
		`{"zz":[1,{"hash":"x"},"]}\",\\"],"prev":"%[2]s","seq":%[1]d,"\u00e9":"\u2028"}`,
		`{"seq":%d,"prev":"%s"}`,
		`{"seq":%d,"prev":"%s","ha":1,"hashes":2,"has":"\"hash\":\"no\","}`,
	)
}

func TestSealAndVerify(t *testing.T) {
	lines := sampleLog(t)
	var seen []string
	rep, err := Verify(bytes.NewReader(bytes.Join(lines, nil)), func(l Line, k Link) error {
		seen = append(seen, fmt.Sprintf("%d@%d", k.Seq, l.Number))
		return nil
	})
	if err != nil || !rep.OK() || rep.Lines != 4 || rep.Head.Seq != 4 || fmt.Sprint(seen) != "[1@1 2@2 3@3 4@4]" {
		t.Fatalf("%v %+v %v", err, rep, seen)
	}
	// The hash is that of the canonical object without the member, computed here
	// by the book.
	for _, line := range lines {
		link, err := ParseLink(line)
		if err != nil {
			t.Fatal(err)
		}
		without := strings.Replace(strings.TrimSpace(string(line)), `"hash":"`+link.Hash+`",`, "", 1)
		c, err := strictjson.Canonical([]byte(without))
		if err != nil || string(c) != without {
			t.Fatalf("%v: not canonical: %s", err, without)
		}
		if sum := sha256.Sum256(c); hex.EncodeToString(sum[:]) != link.Hash {
			t.Errorf("another hash: %s", line)
		}
		if err := Canonical(line); err != nil {
			t.Error(err)
		}
	}
}

func TestStamp(t *testing.T) {
	line := []byte(`{"a":1,"hash":"` + strings.Repeat("0", 64) + `","seq":1}`)
	hash := Stamp(line, len(`{"a":1,`))
	if computed, stated, err := HashOf(line); err != nil || computed != hash || stated != hash {
		t.Errorf("%s %s %v, stamped %s", computed, stated, err, hash)
	}
	if sum := sha256.Sum256([]byte(`{"a":1,"seq":1}`)); hex.EncodeToString(sum[:]) != hash {
		t.Error("another hash than by hand")
	}
}

func TestSealRefuses(t *testing.T) {
	for in, msg := range map[string]string{
		`{"prev":""}`:                 "found 0",
		`{"seq":1,"hash":"x"}`:        "has a member hash already",
		`{"seq":1,"prev":"short"}`:    "malformed",
		`{"seq":1`:                    "ends too early",
		`[1]`:                         "expected an object",
		`{"seq":1,"seq":2,"prev":""}`: "twice",
	} {
		if _, _, err := Seal([]byte(in)); err == nil || !strings.Contains(err.Error(), msg) {
			t.Errorf("%s: %v, expected %q", in, err, msg)
		}
	}
}

func TestVerifySaysWhere(t *testing.T) {
	l := sampleLog(t)
	other := logOf(t, `{"seq":%d,"prev":"%s","b":1}`, `{"seq":%d,"prev":"%s","b":2}`)
	change := func(i int, old, with string) [][]byte {
		c := append([][]byte(nil), l...)
		c[i] = bytes.Replace(c[i], []byte(old), []byte(with), 1)
		if bytes.Equal(c[i], l[i]) {
			t.Fatalf("%q is not in line %d", old, i+1)
		}
		return c
	}
	for name, c := range map[string]struct {
		lines [][]byte
		line  int
		what  string
		good  int64
	}{
		"changed":           {change(1, "zz", "zy"), 2, "the line was changed", 1},
		"dropped":           {[][]byte{l[0], l[2], l[3]}, 2, "number 3, expected 2", 1},
		"swapped":           {[][]byte{l[0], l[2], l[1], l[3]}, 2, "number 3, expected 2", 2},
		"inserted":          {[][]byte{l[0], other[1], l[1], l[2], l[3]}, 2, "follows a line with the hash", 4},
		"repeated":          {[][]byte{l[0], l[0], l[1], l[2], l[3]}, 2, "number 1, expected 2", 4},
		"starts later":      {l[1:], 1, "number 2, expected 1", 0},
		"white space":       {change(2, `,"seq"`, ` ,"seq"`), 3, "the line was changed", 2},
		"hash as escape":    {change(2, `"hash"`, `"h\u0061sh"`), 3, "no member", 2},
		"no JSON":           {change(2, `{`, `(`), 3, "not valid JSON", 2},
		"empty line":        {[][]byte{l[0], []byte("\n"), l[1], l[2], l[3]}, 2, "empty", 4},
		"last line cut":     {[][]byte{l[0], l[1], l[2], l[3][:30]}, 4, "no line end", 3},
		"hash in uppercase": {change(2, `"hash":"`, `"hash":"A`), 3, "malformed", 2},
	} {
		t.Run(name, func(t *testing.T) {
			rep, err := Verify(bytes.NewReader(bytes.Join(c.lines, nil)), nil)
			if err != nil {
				t.Fatal(err)
			}
			if rep.OK() || rep.Problems[0].Line != c.line || !strings.Contains(rep.Problems[0].What, c.what) || rep.Lines != c.good {
				t.Errorf("%d sound lines, problems %v; expected %d and line %d: %s", rep.Lines, rep.Problems, c.good, c.line, c.what)
			}
			if want := int64(len(bytes.Join(c.lines[:c.line-1], nil))); rep.Problems[0].Offset != want {
				t.Errorf("offset %d, expected %d", rep.Problems[0].Offset, want)
			}
		})
	}
}

// TestNotCanonicalIsFound seals a line in another form, as another program might.
func TestNotCanonicalIsFound(t *testing.T) {
	for _, body := range []string{`"a":1, "seq":1`, `"seq":1,"a":1`, `"a":"\u0041","seq":1`} {
		line := []byte(`{"hash":"` + strings.Repeat("0", 64) + `",` + body + "}")
		Stamp(line, 1)
		rep, err := Verify(bytes.NewReader(append(line, '\n')), nil)
		if err != nil || rep.OK() || !strings.Contains(rep.Problems[0].What, "canonical form") {
			t.Errorf("%s: %v %+v", body, err, rep)
		}
	}
}

func TestAnyChangedByteIsFound(t *testing.T) {
	good := bytes.Join(sampleLog(t), nil)
	rapid.Check(t, func(t *rapid.T) {
		bad := bytes.Clone(good)
		at := rapid.IntRange(0, len(good)-1).Draw(t, "at")
		bad[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "xor"))
		rep, err := Verify(bytes.NewReader(bad), nil)
		if err != nil || rep.OK() || rep.Problems[0].Line != 1+bytes.Count(good[:at], []byte("\n")) {
			t.Fatalf("byte %d: %v %+v", at, err, rep)
		}
	})
}

// TestReaderAnySplit holds that lines don't depend on how the bytes arrive.
func TestReaderAnySplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOf(rapid.SampledFrom([]byte("ab\n\r\x00\xff"))).Draw(t, "text")
		r := NewReader(&chunks{text, rapid.IntRange(1, 5).Draw(t, "chunk")})
		var joined []byte
		for n := 1; ; n++ {
			l, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil || l.Number != n || l.Offset != int64(len(joined)) || bytes.ContainsRune(l.Data, '\n') {
				t.Fatalf("line %+v, %v", l, err)
			}
			joined = append(joined, l.Data...)
			if l.Whole {
				joined = append(joined, '\n')
			}
			if l.Offset+l.Size != int64(len(joined)) {
				t.Fatalf("line %+v", l)
			}
		}
		if !bytes.Equal(joined, text) {
			t.Fatalf("read %q of %q", joined, text)
		}
	})
}

type chunks struct {
	rest []byte
	n    int
}

func (c *chunks) Read(b []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), c.n)], c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func TestReaderBoundsALine(t *testing.T) {
	r := NewReader(io.MultiReader(bytes.NewReader(bytes.Repeat([]byte("x"), MaxLine+100)), strings.NewReader("\nnext\n"), failing{}))
	l, err := r.Next()
	if err != nil || !l.TooLong || l.Size != MaxLine+101 || len(l.Data) > MaxLine+1 || Form(l) == nil {
		t.Fatalf("size %d, %d kept, %v", l.Size, len(l.Data), err)
	}
	l, err = r.Next()
	if err != nil || l.TooLong || string(l.Data) != "next" || l.Number != 2 || l.Offset != MaxLine+101 {
		t.Fatalf("%+v %v", l, err)
	}
	if _, err = r.Next(); !errors.Is(err, errDisk) || !strings.Contains(err.Error(), "line 3") {
		t.Fatalf("%v", err)
	}
}

var errDisk = errors.New("the disk is gone")

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errDisk }

func TestKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	var wg sync.WaitGroup
	ids := make([]string, 8)
	for i := range ids { // several processes may start at once
		wg.Go(func() {
			k, err := LoadKey(path)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = k.ID()
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] || len(id) != 64 {
			t.Fatalf("different keys: %v", ids)
		}
	}
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", fi.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".key-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	k, err := LoadKey(path)
	if err != nil {
		t.Fatal(err)
	}
	h := Head{Log: "s", Seq: 3, Hash: strings.Repeat("ab", 32)}
	sig := k.Sign(h)
	if !VerifyHead(k.Public(), h, sig) || KeyID(k.Public()) != k.ID() {
		t.Error("the signature doesn't verify")
	}
	for name, bad := range map[string]Head{"log": {"t", 3, h.Hash}, "seq": {"s", 4, h.Hash}, "hash": {"s", 3, strings.Repeat("ac", 32)}, "shifted": {"s\n3", 3, h.Hash}} {
		if VerifyHead(k.Public(), bad, sig) {
			t.Errorf("the signature verifies with another %s", name)
		}
	}
	for name, bad := range map[string]string{"empty": "", "no base64": "%", "short": sig[:40], "padded": sig + "AAAA", "line break": sig[:10] + "\n" + sig[10:]} {
		if VerifyHead(k.Public(), h, bad) {
			t.Errorf("a signature that is %s verifies", name)
		}
	}
	if VerifyHead(nil, h, sig) {
		t.Error("no key verifies")
	}
}

func TestKeyRefused(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(p, mode); err != nil {
			t.Fatal(err)
		}
		return p
	}
	if _, err := LoadKey(filepath.Join(dir, "good")); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(filepath.Join(dir, "good"))
	if err != nil {
		t.Fatal(err)
	}
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	other := string(pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der}))
	for name, c := range map[string]struct {
		path, msg string
	}{
		"readable by others": {write("open", string(good), 0o644), "chmod 600"},
		"empty":              {write("empty", "", 0o600), "no such block"},
		"cut":                {write("cut", string(good[:60]), 0o600), "no such block"},
		"another kind":       {write("rsa", other, 0o600), "rsa.PrivateKey"},
		"no folder":          {filepath.Join(dir, "none", "key"), "can't be made"},
	} {
		_, err := LoadKey(c.path)
		if err == nil || !strings.Contains(err.Error(), c.msg) || !strings.Contains(err.Error(), c.path) {
			t.Errorf("%s: %v, expected %q", name, err, c.msg)
		}
	}
}

func FuzzVerify(f *testing.F) {
	f.Add(bytes.Join(sampleLog(f), nil))
	f.Add([]byte("{\"hash\":\"\n{\"hash\":\n{}\n{\"\\"))
	f.Fuzz(func(t *testing.T, log []byte) {
		rep, err := Verify(bytes.NewReader(log), nil)
		if err != nil {
			t.Fatal(err)
		}
		if rep.Lines != rep.Head.Seq {
			t.Fatalf("%d sound lines, the head is %d", rep.Lines, rep.Head.Seq)
		}
		if n := int64(bytes.Count(log, []byte("\n"))); rep.Lines > n {
			t.Fatalf("%d sound lines of %d", rep.Lines, n)
		}
	})
}
