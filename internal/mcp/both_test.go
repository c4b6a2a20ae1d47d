package mcp_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/mcp"
)

// spawn returns how to reach a server that plays a script, and what starts it again
// where the host can't.
type spawn func(t testing.TB, name string, s script) (cfg mcp.Server, again func())

// onBoth runs a test with real processes on either transport.
func onBoth(t *testing.T, test func(t *testing.T, serve spawn)) {
	t.Parallel()
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		test(t, func(t testing.TB, name string, s script) (mcp.Server, func()) { return server(t, name, s), func() {} })
	})
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		test(t, func(t testing.TB, name string, s script) (mcp.Server, func()) {
			cfg, p := overHTTP(t, name, s)
			return cfg, p.again
		})
	})
}

func TestBothCrash(t *testing.T) {
	onBoth(t, func(t *testing.T, serve spawn) {
		cfg, again := serve(t, "s", script{Tools: named("crash", "echo")})
		other, _ := serve(t, "other", script{Tools: named("echo")})
		r := start(t, mcp.Options{}, cfg, other)
		r.fails("mcp__s__crash", `{}`, `of MCP server "s" gave no result`)
		r.works("mcp__other__echo", `{}`, "echo {}")
		again()
		r.works("mcp__s__echo", `{"a":1}`, `echo {"a":1}`)
		if st := r.States()[0]; st.State != mcp.StateReady || st.Restarts != 1 {
			t.Errorf("state %+v", st)
		}
	})
}

// TestBothStartFails is a start that comes to nothing halfway: nothing is left of
// it while the host goes on.
func TestBothStartFails(t *testing.T) {
	for _, tt := range []struct {
		name string
		s    script
		want string
	}{
		{"silent", script{Silent: true, Stubborn: true}, "did not answer within 2s"},
		{"list hangs", script{ListHangs: true, Stubborn: true}, "did not list its tools within 2s"},
		{"list exits", script{ListExits: 9}, "its list of tools could not be read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, serve spawn) {
				s := tt.s // the tests of the two transports run at once
				s.Log = logFile(t)
				cfg, _ := serve(t, "s", s)
				cfg.StartTimeout = 2 * time.Second
				if s.ListExits != 0 {
					cfg.StartTimeout = 0
				}
				good, _ := serve(t, "good", script{Tools: named("echo")})
				begin := time.Now()
				r := start(t, mcp.Options{}, cfg, good)
				if took := time.Since(begin); took > 10*time.Second {
					t.Errorf("the start took %v", took)
				}
				r.noticed(tt.want)
				if st := r.States()[0]; st.State != mcp.StateFailed || st.Pid != 0 || !strings.Contains(st.Error, tt.want) {
					t.Errorf("state %+v", st)
				}
				if cfg.Command != "" {
					gone(t, pids(t, s.Log)...)
				}
				r.wantNames("mcp__good__echo")
				r.works("mcp__good__echo", `{}`, "echo")
			})
		})
	}
}

// TestBothNames is I183 and I178 once more, with what two servers say together.
func TestBothNames(t *testing.T) {
	onBoth(t, func(t *testing.T, serve spawn) {
		long := strings.Repeat("x", 60)
		tools := append(named("search", long+"1", long+"2"), `{"name":"bad","inputSchema":{"type":"object","properties":{"a/b c":{}}}}`, `{"name":"worse","inputSchema":[]}`)
		a, _ := serve(t, "a", script{Tools: tools})
		b, _ := serve(t, "b", script{Tools: named("search")})
		r := start(t, mcp.Options{}, a, b)
		names := r.names()
		if len(names) != 4 || names[0] != "mcp__a__search" || names[1] == names[2] || names[3] != "mcp__b__search" {
			t.Errorf("tools are %q", names)
		}
		for _, n := range names {
			_, original, _ := r.Original(n)
			r.works(n, `{}`, original+" {}")
		}
		r.noticed(`MCP server "a": its tool "bad" is left out`, `its tool "worse" is left out`)
	})
}

func TestBothLargeResults(t *testing.T) {
	onBoth(t, func(t *testing.T, serve spawn) {
		cfg, _ := serve(t, "s", script{Tools: named("huge", "pieces", "deep", "monster", "wide", "echo")})
		r := start(t, mcp.Options{}, cfg)
		if res := r.run("mcp__s__huge", `{}`); len(res.Content) > 66<<10 || !strings.Contains(res.Content, "of 2097160 bytes cut here") {
			t.Errorf("a huge result came as %d bytes", len(res.Content))
		}
		if res := r.run("mcp__s__pieces", `{}`); len(res.Content) > 66<<10 || !strings.HasPrefix(res.Content, "first\n") || !strings.Contains(res.Content, "more than 1024 pieces; the rest is not shown") {
			t.Errorf("a result of many pieces came as %d bytes: %.100q", len(res.Content), res.Content)
		}
		r.fails("mcp__s__deep", `{}`, "isn't sound JSON", "nested deeper")
		r.works("mcp__s__wide", `{}`, "told")
		r.noticed("it has 2097", "the limit for what is neither a list nor a result of tools is 1048576")
		r.works("mcp__s__echo", `{}`, "echo")
		if n := r.States()[0].Restarts; n != 0 {
			t.Errorf("%d restarts before there was a reason", n)
		}
		r.fails("mcp__s__monster", `{}`, "a message of more than 16777216 bytes", "gave no result")
		r.works("mcp__s__echo", `{}`, "echo")
	})
}

// TestBothEntries is a list whose many small entries would take up far more room
// than its text.
func TestBothEntries(t *testing.T) {
	onBoth(t, func(t *testing.T, serve spawn) {
		many := strings.Split(strings.Repeat("0,", 1<<20)+"0", ",")
		cfg, _ := serve(t, "s", script{Tools: append(named("echo"), many...)})
		paged, _ := serve(t, "paged", script{Tools: append(named("echo"), many[:3000]...), PageSize: 1000})
		tools, _ := serve(t, "tools", script{Tools: named(strings.Fields(fmt.Sprint(seq(600)))...)})
		r := start(t, mcp.Options{}, cfg, paged, tools)
		r.works("mcp__s__echo", `{}`, "echo")
		r.works("mcp__paged__echo", `{}`, "echo")
		for _, name := range []string{"s", "paged", "tools"} {
			r.noticed(name + `": it lists more than 512 tools, or 2048 entries; the rest is left out`)
		}
		for i, want := range []int{1, 1, 512} {
			if n := len(r.States()[i].Tools); n != want {
				t.Errorf("server %d has %d tools, expected %d", i, n, want)
			}
		}
	})
}

// TestScreenIsBounded holds that a message doesn't grow on its way to the SDK.
func TestScreenIsBounded(t *testing.T) {
	t.Parallel()
	for _, result := range []string{
		`{"tools":[0` + strings.Repeat(",0", 6<<20) + `]}`,
		`{"tools":[{}` + strings.Repeat(",{}", 4<<20) + `]}`,
	} {
		out, _, _ := mcp.Screen([]byte(`{"jsonrpc":"2.0","id":1,"result":` + result + `}`))
		if len(out) == 0 || len(out) > 1<<20 {
			t.Errorf("%d bytes came out of a list of many entries", len(out))
		}
	}
	message := `{"jsonrpc":"2.0","method":"x","params":"` + strings.Repeat("x", 1<<20) + `"}`
	if out, _, _ := mcp.Screen([]byte(message)); out != nil {
		t.Errorf("a large message came through: %d bytes", len(out))
	}
}

func seq(n int) (out []int) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

func TestBothChange(t *testing.T) {
	onBoth(t, func(t *testing.T, serve spawn) {
		file := filepath.Join(t.TempDir(), "tools")
		toolsFile(t, file, named("change", "x", "gone")...)
		cfg, _ := serve(t, "s", script{ToolsFile: file})
		r := start(t, mcp.Options{}, cfg)
		toolsFile(t, file, append(named("change", "new"), `{"name":"x","description":"another",`+open+`}`)...)
		r.works("mcp__s__change", `{}`, "changed")
		r.fails("mcp__s__x", `{}`, "changed what the tool is")
		r.fails("mcp__s__gone", `{}`, "doesn't offer it any more")
		r.noticed(`has a new tool "new"`)
		r.wantNames("mcp__s__change", "mcp__s__gone", "mcp__s__x")
	})
}

func TestBothElicitation(t *testing.T) {
	onBoth(t, func(t *testing.T, serve spawn) {
		cfg, _ := serve(t, "s", script{Tools: named("ask", "askmany"), Log: logFile(t)})
		r := start(t, answers(mcp.ElicitAnswer{Action: "accept", Content: []byte(`{"team":"core","n":1.50}`)}, nil), cfg)
		r.works("mcp__s__ask", `{"params":`+teamForm+`}`, "answered")
		r.works("mcp__s__askmany", `{}`, `"action":"accept","content":{"n":1.50,"team":"core"}`)
	})
}

// TestBothManyQuestions is a server that asks more than anybody can answer.
func TestBothManyQuestions(t *testing.T) {
	onBoth(t, func(t *testing.T, serve spawn) {
		log := logFile(t)
		cfg, _ := serve(t, "s", script{Tools: named("askmany"), Log: log})
		free := make(chan struct{})
		var asked atomic.Int64
		r := start(t, mcp.Options{Elicit: func(ctx context.Context, _ mcp.Elicitation) (mcp.ElicitAnswer, error) {
			asked.Add(1)
			select {
			case <-free:
			case <-ctx.Done():
			}
			return mcp.ElicitAnswer{Action: mcp.ElicitCancel}, nil
		}}, cfg)
		go func() {
			r.noticed("4 of its questions wait already")
			declined := func() bool {
				data, _ := os.ReadFile(log)
				return strings.Count(string(data), `answer {"action":"decline"`) == 6
			}
			if !eventually(declined) {
				t.Error("not all questions past the limit were declined")
			}
			close(free)
		}()
		res := r.run("mcp__s__askmany", `{}`)
		if n := strings.Count(res.Content, `"cancel"`); n != 4 || asked.Load() != 4 {
			t.Errorf("%d questions reached a person, expected 4: %+v", asked.Load(), res)
		}
		for range 30 { // at least 4 of each 10 are asked, until all of them have been
			r.run("mcp__s__askmany", `{}`)
		}
		if asked.Load() != 100 {
			t.Errorf("%d questions reached a person, expected 100", asked.Load())
		}
		r.noticed("it has asked 100 times in this session")
	})
}

// TestBothFlood is a server that asks without end and takes no answer.
func TestBothFlood(t *testing.T) {
	onBoth(t, func(t *testing.T, serve spawn) {
		cfg, again := serve(t, "s", script{Tools: named("flood", "echo")})
		r := start(t, mcp.Options{}, cfg)
		r.fails("mcp__s__flood", `{}`, "more than 128 messages wait for it to read them")
		again()
		r.works("mcp__s__echo", `{}`, "echo")
		r.noticed("more than 128 messages wait", "started again (1 of at most 3")
	})
}

// TestDeaf is a server that doesn't read: neither a call nor Close waits for it.
func TestDeaf(t *testing.T) {
	t.Parallel()
	log := logFile(t)
	cfg := server(t, "s", script{Tools: named("echo"), Log: log, Deaf: true})
	cfg.CallTimeout = 300 * time.Millisecond
	r := start(t, mcp.Options{}, cfg)
	big := `{"a":"` + strings.Repeat("x", 1<<19) + `"}`
	if res := r.fails("mcp__s__echo", big, "did not answer within 300ms"); !res.TimedOut {
		t.Errorf("got %+v", res)
	}
	r.fails("mcp__s__echo", `{}`, "gave no result")
	begin := time.Now()
	r.Close()
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("Close took %v", took)
	}
	gone(t, pids(t, log)...)
}

func TestBothDeferred(t *testing.T) {
	onBoth(t, func(t *testing.T, serve spawn) {
		var tools []string
		for _, n := range []string{"alpha", "beta", "gamma"} {
			tools = append(tools, fmt.Sprintf(`{"name":%q,"description":"handles %s things%s",%s}`, n, n, strings.Repeat(".", 400), open))
		}
		cfg, _ := serve(t, "s", script{Tools: tools})
		r := start(t, mcp.Options{BudgetTokens: 150}, cfg)
		if specs := r.Listed(); len(specs) != 2 || specs[0].Name != "mcp__s__alpha" || specs[1].Name != "mcp_tools" {
			t.Fatalf("listed %v", specs)
		}
		r.works("mcp_tools", `{"query":"gamma"}`, "mcp__s__gamma: ")
		r.works("mcp_tools", `{"name":"mcp__s__gamma"}`, "You can now call mcp__s__gamma")
		if specs := r.Listed(); len(specs) != 3 || specs[2].Name != "mcp__s__gamma" {
			t.Errorf("listed %v", specs)
		}
		r.works("mcp__s__gamma", `{"a":1}`, `gamma {"a":1}`)
	})
}
