package elicitation_test

import (
	"errors"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/elicitation"
	"github.com/abhed/abhed/internal/strictjson"
)

// FuzzRequest holds that whatever is refused is refused with a place, and that what
// is accepted is strict JSON whose form can be answered by nothing more than shape.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{askText, `{"mode":"url","message":"m","url":"https://a.example/","elicitationId":"e"}`, formOf(`{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}`), `[`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		q, err := elicitation.ParseRequest(text)
		if err != nil {
			checkError(t, text, err)
			return
		}
		if strictjson.Check(text, strictjson.Options{}) != nil {
			t.Fatal("a text that the strict door refuses was accepted")
		}
		if (q.Mode == elicitation.ModeForm) != (q.Form != nil) || (q.Mode == elicitation.ModeURL) != (q.URL != "") {
			t.Fatalf("mode %q with another mode's members", q.Mode)
		}
	})
}

// FuzzResult holds that an accepted result can be edited by an empty merge into an
// equal one, if it has an answer, and that the edited text is accepted again.
func FuzzResult(f *testing.F) {
	for _, s := range []string{answerText, `{"action":"decline"}`, `{"action":"accept","content":{"a":"","b":[1]}}`, `{"action":"accept","x":{"a":1e5},"content":{}}`} {
		f.Add([]byte(s))
	}
	q := request(f, askText)
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := elicitation.ParseResult(text, q)
		if err != nil {
			checkError(t, text, err)
			return
		}
		out, err := elicitation.Edit(text, ahp.OpMerge, ahp.Raw(`{}`), q)
		if (err == nil) != (r.Content != nil) {
			t.Fatalf("edit of %s: %v", text, err)
		}
		if err == nil && !strictjson.Equal(out, text) {
			t.Fatalf("an empty merge made %s of %s", out, text)
		}
	})
}

func checkError(t *testing.T, text []byte, err error) {
	t.Helper()
	var e *ahp.Error
	if !errors.As(err, &e) || e.Found == "" || e.Expected == "" || e.Offset < 0 || e.Offset > int64(len(text)) {
		t.Fatalf("an error without a place: %v", err)
	}
}

// TestNumbersAreExact compares bounds with exact arithmetic.
func TestNumbersAreExact(t *testing.T) {
	number := rapid.StringMatching(`-?(0|[1-9][0-9]{0,3})(\.[0-9]{1,4})?([eE][+-]?[0-9])?`)
	rapid.Check(t, func(rt *rapid.T) {
		bound, answer := number.Draw(rt, "bound"), number.Draw(rt, "answer")
		b, _ := new(big.Rat).SetString(bound)
		a, _ := new(big.Rat).SetString(answer)
		text := []byte(`{"action":"accept","content":{"a":` + answer + `}}`)
		for _, c := range []struct {
			property string
			want     bool
		}{
			{`{"type":"number","minimum":` + bound + `}`, a.Cmp(b) >= 0},
			{`{"type":"number","maximum":` + bound + `}`, a.Cmp(b) <= 0},
			{`{"type":"integer"}`, a.IsInt()},
		} {
			q, err := elicitation.ParseRequest([]byte(formOf(c.property)))
			if err != nil {
				rt.Fatal(err)
			}
			if _, err := elicitation.ParseResult(text, q); (err == nil) != c.want {
				rt.Fatalf("%s for %s: %v, want %v", answer, c.property, err, c.want)
			}
		}
	})
}
