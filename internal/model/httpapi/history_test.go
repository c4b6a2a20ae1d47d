package httpapi

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/abhed/abhed/internal/model"
)

func said(text, id string) *model.Message {
	m := &model.Message{Role: "assistant", Parts: []model.Part{{Text: &text}}}
	if id != "" {
		m.Parts = append(m.Parts, model.Part{ToolCall: &model.ToolCall{ID: id, Name: "f"}})
	}
	return m
}

// appendText is an encoding that leaves out empty messages.
func appendText(dst []byte, m *model.Message) []byte {
	if m.Text() == "" {
		return dst
	}
	return append(append(dst, ','), m.Text()...)
}

// TestHistoryGivesWhatAFreshOneGives edits a history at random. What was handed out
// before must not change, and the ids are those of the history.
func TestHistoryGivesWhatAFreshOneGives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kept := History{Append: appendText}
		var ms []*model.Message
		type out struct {
			got []byte
			was string
		}
		var handed []out
		for i := range rapid.IntRange(1, 12).Draw(t, "turns") {
			keep := rapid.IntRange(0, len(ms)).Draw(t, "keep")
			ms = append([]*model.Message{}, ms[:keep]...)
			for range rapid.IntRange(0, 3).Draw(t, "new") {
				ms = append(ms, said(rapid.SampledFrom([]string{"", "a", "bb"}).Draw(t, "text"), rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "id")))
			}
			fresh := History{Append: appendText}
			got, want := kept.Encode(ms), string(fresh.Encode(ms))
			if string(got) != want {
				t.Fatalf("turn %d: %q, want %q", i, got, want)
			}
			for _, id := range []string{"1", "2"} {
				if kept.Used(id) != fresh.Used(id) {
					t.Fatalf("turn %d: id %s used %v", i, id, kept.Used(id))
				}
			}
			handed = append(handed, out{got, want})
		}
		for _, h := range handed {
			if string(h.got) != h.was {
				t.Fatalf("%q was %q", h.got, h.was)
			}
		}
	})
}

func TestSeals(t *testing.T) {
	seal := func(origin, data string) *model.Message {
		return &model.Message{Role: "assistant", Parts: []model.Part{{Seal: &model.Seal{Origin: origin, Data: data}}}}
	}
	s := Seals{Origin: "us"}
	h := History{Append: func(dst []byte, m *model.Message) []byte {
		if s.Mine(m.Parts[0].Seal) {
			return append(append(dst, ','), m.Parts[0].Seal.Data...)
		}
		return dst
	}}
	ms := []*model.Message{seal("us", "a"), seal("them", "b"), {Role: "user", Parts: []model.Part{{}}}}
	if got := string(h.Encode(ms)); got != "a" {
		t.Error(got)
	}
	other := errors.New("other")
	if err := s.Refused(other, ms, &h); err != other || string(h.Encode(ms)) != "a" {
		t.Errorf("another failure: %v, %s", err, h.Encode(ms))
	}
	refused := &model.Error{Kind: model.ErrReplay}
	if err := s.Refused(refused, ms, &h); err != refused || refused.Kind != model.ErrReplay || string(h.Encode(ms)) != "" {
		t.Errorf("the first refusal: %v, %s", err, h.Encode(ms))
	}
	// The same seal in a copy of the message is known, a new one is sent.
	ms = append(ms, seal("us", "a"), seal("us", "c"))
	if got := string(h.Encode(ms)); got != "c" {
		t.Error(got)
	}
	if s.Drop(ms); string(h.Encode(ms)) != "c" {
		t.Error("an encoding was dropped without Forget")
	}
	if err := s.Refused(refused, ms, &h); refused.Kind != model.ErrRequest {
		t.Errorf("a refusal with nothing left to drop: %v", err)
	}
}

func TestToolList(t *testing.T) {
	encoded := 0
	l := ToolList{Open: "<", Close: ">", Append: func(dst []byte, t model.ToolSpec, schema []byte) []byte {
		encoded++
		return append(append(dst, t.Name...), schema...)
	}}
	tools := []model.ToolSpec{{Name: "a", Schema: []byte(`{}`)}, {Name: "b"}}
	for range 3 {
		if got, err := l.Encode(tools); err != nil || string(got) != `<a{},b{"type":"object","properties":{}}>` {
			t.Errorf("%s %v", got, err)
		}
	}
	tools[0].Name = "c"
	if got, _ := l.Encode(tools); encoded != 4 || !strings.HasPrefix(string(got), "<c{}") {
		t.Errorf("%d encodings, %s", encoded, got)
	}
	if got, err := l.Encode(nil); err != nil || len(got) != 0 {
		t.Errorf("%s %v", got, err)
	}
	if _, err := l.Encode([]model.ToolSpec{{Name: "bad", Schema: []byte(`{`)}}); err == nil || !strings.Contains(err.Error(), `"bad"`) {
		t.Error(err)
	}
}

func TestSmaller(t *testing.T) {
	for _, c := range [][3]int64{{0, 0, 0}, {5, 0, 5}, {0, 5, 5}, {5, 3, 3}, {3, 5, 3}, {-1, -1, 0}} {
		if got := Smaller(c[0], c[1]); got != c[2] {
			t.Errorf("%v: %d", c, got)
		}
	}
}
