package session

import (
	"os"
	"testing"

	"github.com/abhed/abhed/internal/chain"
	"github.com/abhed/abhed/internal/event"
)

func TestQuick(t *testing.T) {
	st, err := OpenStore(t.TempDir(), Options{Secrets: [][]byte{[]byte("hunter2hunter2")}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := st.Create(".", CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	s.Subscribe(func(event.Event) { n++ })
	for range 5 {
		if _, err := s.Append(event.Draft{Actor: "user", Trust: "operator", Payload: &event.Notice{Text: "my hunter2hunter2 \xff"}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	f, _ := os.Open(s.Path())
	r, err := chain.Verify(f, nil)
	b, _ := os.ReadFile(s.Path())
	t.Logf("%s %v %d %d\n%s", s.Path(), err, n, r.Lines, b)
	for _, p := range r.Problems {
		t.Error(p)
	}
}
