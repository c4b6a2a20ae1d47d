package session

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/chain"
)

var (
	hashMember = regexp.MustCompile(`"hash":"[0-9a-f]{64}",`)
	prevMember = regexp.MustCompile(`"prev":"[0-9a-f]*"`)
)

// forge does what somebody without the key can: it changes the lines from
// number from on by f and computes all hashes anew.
func forge(t *testing.T, lines [][]byte, from int, f func(n int, line string) string) []byte {
	t.Helper()
	prev := ""
	var out []byte
	for i, l := range lines {
		n := i + 1
		if n >= from {
			s := hashMember.ReplaceAllString(strings.TrimSpace(string(l)), "")
			s = prevMember.ReplaceAllString(f(n, s), `"prev":"`+prev+`"`)
			sealed, hash, err := chain.Seal([]byte(s))
			if err != nil {
				t.Fatal(err)
			}
			out, prev = append(append(out, sealed...), '\n'), hash
			continue
		}
		_, stated, err := chain.HashOf(l)
		if err != nil {
			t.Fatal(err)
		}
		out, prev = append(out, l...), stated
	}
	return out
}

func TestForgedRecordIsFound(t *testing.T) {
	st := newStore(t, Options{})
	path := record(t, st)
	good := bytes.SplitAfter(read(t, path), []byte("\n"))
	good = good[:len(good)-1]
	keys, blobs := VerifyOptions{Keys: []chain.PublicKey{st.Key().Public()}}, blobsOf(path)
	same := func(_ int, l string) string { return l }
	if got := forge(t, good, 1, same); !bytes.Equal(got, bytes.Join(good, nil)) {
		t.Fatal("the forger doesn't make the same lines of the same events: the test tests nothing")
	}
	lastSigned := 0
	for i, l := range good {
		if bytes.Contains(l, []byte(`"type":"head.signed"`)) {
			lastSigned = i + 1
		}
	}
	resume := func(content []byte, o ResumeOptions) error {
		s, _, _, err := st.Resume(tampered(t, path, content), o)
		if err == nil {
			s.Close()
		}
		return err
	}
	// History rewritten before a signature: the signature names another head.
	content := forge(t, good, 4, func(n int, l string) string {
		if n == 4 {
			return strings.Replace(l, "let me see", "let me lie", 1)
		}
		return strings.Replace(l, `"turn":1`, `"turn":2`, 1)
	})
	rep := verifyBytes(t, content, blobs, keys)
	if rep.OK || !strings.Contains(rep.Problems[0].What, "the signature names event") {
		t.Errorf("rewritten: %v", rep.Problems)
	}
	var re *RefusedError
	if err := resume(content, ResumeOptions{}); !errors.As(err, &re) || len(re.Broken) == 0 || re.Unsigned {
		t.Errorf("resume of a rewritten record: %v", err)
	}
	// The forger names the new head but has no key.
	content = forge(t, good, lastSigned, func(n int, l string) string {
		return regexp.MustCompile(`"signature":"....`).ReplaceAllString(l, `"signature":"AAAA`)
	})
	rep = verifyBytes(t, content, blobs, keys)
	if rep.OK || rep.Problems[0].Line != lastSigned || !strings.Contains(rep.Problems[0].What, "not that of the key") {
		t.Errorf("false signature in line %d: %v", lastSigned, rep.Problems)
	}
	if err := resume(content, ResumeOptions{}); !errors.As(err, &re) || len(re.Broken) != 1 || re.Broken[0].Line != lastSigned {
		t.Errorf("resume over a false signature: %v", err)
	}
	// The forger signs with a key of his own.
	mallory := newStore(t, Options{})
	content = read(t, record(t, mallory))
	rep = verifyBytes(t, content, blobs, keys)
	if rep.OK || len(rep.OtherKeys) != 1 || rep.OtherKeys[0] != mallory.Key().ID() {
		t.Errorf("signed by another key: %+v", rep)
	}
	forged := filepath.Join(t.TempDir(), "forged.jsonl")
	if err := os.WriteFile(forged, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := st.Resume(forged, ResumeOptions{AcceptBroken: true}); !errors.As(err, &re) || !re.Unsigned {
		t.Errorf("resume of what another key signed: %v", err)
	}
	s, _, info, err := st.Resume(forged, ResumeOptions{AcceptUnsigned: true})
	if err != nil || !info.AcceptedUnsigned || info.UnsignedTail == 0 {
		t.Fatalf("%v %+v", err, info)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
