package tool_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool"
)

// echo is a tool that counts its runs.
type echo struct {
	name string
	runs *atomic.Int64
	run  func(tool.Grant) (tool.Result, error)
}

func (e echo) Spec() tool.Spec {
	return tool.Spec{
		Name: e.name, Version: "1", Description: "says what it was told",
		Schema:         []byte(`{"type":"object","properties":{"text":{"type":"string"},"n":{"type":"integer"},"body":{"type":"string"}},"required":["text"],"additionalProperties":false}`),
		ContentMembers: []string{"body"},
	}
}

func (e echo) Declare([]byte) policy.Declaration { return policy.Declaration{} }

func (e echo) Run(_ context.Context, g tool.Grant) (tool.Result, error) {
	e.runs.Add(1)
	if e.run != nil {
		return e.run(g)
	}
	return tool.OK(string(g.Args())), nil
}

func setup(t *testing.T, run func(tool.Grant) (tool.Result, error)) (*tool.Minter, *tool.Executor, *atomic.Int64) {
	t.Helper()
	runs := new(atomic.Int64)
	reg, err := tool.NewRegistry(echo{"echo", runs, run})
	if err != nil {
		t.Fatal(err)
	}
	m, v := tool.NewAuthority()
	return m, tool.NewExecutor(reg, v), runs
}

var call = policy.Call{ID: "c1", Tool: "echo", Args: []byte(`{"text":"x"}`)}

func TestPermitRunsOnce(t *testing.T) {
	m, x, runs := setup(t, nil)
	p := m.Mint(call, nil)
	const racers = 50
	var won atomic.Int64
	var wg sync.WaitGroup
	for range racers {
		copied := p
		wg.Go(func() {
			if res, err := x.Run(t.Context(), copied, nil); err == nil && res.Content == `{"text":"x"}` {
				won.Add(1)
			} else if !errors.Is(err, tool.ErrNoPermit) {
				t.Errorf("a loser got %v", err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || runs.Load() != 1 {
		t.Errorf("%d callers succeeded and the tool ran %d times; both should be 1", won.Load(), runs.Load())
	}
}

func TestNoPermitNoRun(t *testing.T) {
	_, x, runs := setup(t, nil)
	foreign, _ := tool.NewAuthority()
	for name, p := range map[string]tool.Permit{"zero": {}, "of another authority": foreign.Mint(call, nil)} {
		if _, err := x.Run(t.Context(), p, nil); !errors.Is(err, tool.ErrNoPermit) {
			t.Errorf("permit that is %s: got %v, want ErrNoPermit", name, err)
		}
	}
	if runs.Load() != 0 {
		t.Errorf("the tool ran %d times", runs.Load())
	}
}

func TestZeroGrantPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a zero Grant gave arguments")
		}
	}()
	tool.Grant{}.Args()
}

func TestBrokenToolIsAnError(t *testing.T) {
	m, x, _ := setup(t, func(tool.Grant) (tool.Result, error) { panic("boom") })
	_, err := x.Run(t.Context(), m.Mint(call, nil), nil)
	if err == nil || !strings.Contains(err.Error(), "tool echo is broken: boom") {
		t.Errorf("got %v", err)
	}
}

func TestResultIsClean(t *testing.T) {
	m, x, _ := setup(t, func(tool.Grant) (tool.Result, error) { return tool.OK("a\xff\x00\xed\xa0\x80é"), nil })
	res, err := x.Run(t.Context(), m.Mint(call, nil), nil)
	if want := `a\xff\x00\xed\xa0\x80é`; err != nil || res.Content != want {
		t.Errorf("got %q, %v; want %q", res.Content, err, want)
	}
}

func TestCleanKeepsGoodText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		got := tool.Clean(s)
		if !utf8.ValidString(got) || strings.IndexByte(got, 0) >= 0 {
			t.Fatalf("Clean(%q) = %q", s, got)
		}
		if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 && got != s {
			t.Fatalf("Clean changed %q to %q", s, got)
		}
	})
}

func TestName(t *testing.T) {
	for in, want := range map[string]string{
		"plain/é name.go": "plain/é name.go", "a\nb": `a\nb`, "a\r\tb": `a\r\tb`, "\x1b[31m": `\x1b[31m`, "\u0085": `\u0085`, "\u2028x": `\u2028x`,
		"caf\xe9\n": `caf\xe9\n`, `a\nb`: `a\nb`, "": "",
	} {
		if got := tool.Name(in); got != want {
			t.Errorf("Name(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	reg, err := tool.NewRegistry(echo{"echo", new(atomic.Int64), nil})
	if err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat("x", 1<<20)
	tests := []struct{ name, tool, args, want, msg string }{
		{"canonical", "echo", ` { "text" : "\u0041", "n": 1 } `, `{"n":1,"text":"A"}`, ""},
		{"content may be large", "echo", `{"text":"a","body":"` + big + `"}`, `{"body":"` + big + `","text":"a"}`, ""},
		{"anything else may not", "echo", `{"text":"` + big + `"}`, "", "the limit is 1048576"},
		{"unknown tool", "Echo", `{"text":"x"}`, "", `There is no tool named "Echo". The tools are: echo.`},
		{"not an object", "echo", `["x"]`, "", "found a list, expected an object"},
		{"null", "echo", `null`, "", "expected an object"},
		{"cut", "echo", `{"text":"x`, "", "the JSON ends too early"},
		{"repeated name", "echo", `{"text":"x","text":"y"}`, "", "the same member name twice"},
		{"bad UTF-8", "echo", "{\"text\":\"\xff\"}", "", "invalid UTF-8"},
		{"name in other case", "echo", `{"text":"x","Text":"y"}`, "", `member "Text" differs from "text" only in case`},
		{"unknown name", "echo", `{"text":"x","more":1}`, "", "The tool takes: body, n, text"},
		{"missing name", "echo", `{"n":1}`, "", "text"},
		{"wrong type", "echo", `{"text":7}`, "", "text"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := reg.Check(tt.tool, []byte(tt.args))
			if tt.msg == "" {
				if err != nil || string(got) != tt.want {
					t.Fatalf("got %.80s, %v", got, err)
				}
				return
			}
			var ae *tool.ArgsError
			if !errors.As(err, &ae) || !strings.Contains(ae.Msg, tt.msg) {
				t.Errorf("got %v, want an *ArgsError with %q", err, tt.msg)
			}
		})
	}
}

func TestRegistryRefuses(t *testing.T) {
	r := new(atomic.Int64)
	if _, err := tool.NewRegistry(echo{"a", r, nil}, echo{"a", r, nil}); err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("two tools of one name: %v", err)
	}
}

// FuzzCheck holds that whatever is accepted is a canonical object and is accepted
// again unchanged.
func FuzzCheck(f *testing.F) {
	reg, err := tool.NewRegistry(echo{"echo", new(atomic.Int64), nil})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"text":"x","n":1.0}`))
	f.Add([]byte(`{"Text":"x"}`))
	f.Fuzz(func(t *testing.T, args []byte) {
		got, err := reg.Check("echo", args)
		if err != nil {
			return
		}
		again, err := reg.Check("echo", got)
		if err != nil || string(again) != string(got) {
			t.Fatalf("%q was accepted as %q and then as %q (%v)", args, got, again, err)
		}
	})
}
