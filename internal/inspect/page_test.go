package inspect_test

import (
	"context"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/internal/inspect"
)

// hostile is content that would run if it became markup anywhere.
const hostile = `</script><script>window.ran=1</script><img src=x onerror="window.ran=1"><svg onload="window.ran=1">` + "\u202e\x00" + `javascript:window.ran=1`

// TestPage holds, in a real browser, that events appear as they happen, with the
// decision, the backends' latency and the messages, and that hostile content of
// every kind is shown as text and does nothing.
func TestPage(t *testing.T) {
	rules := hook{id: "com.example.rules", handler: judging(backend.Func(func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		command, _ := backend.InputText(q.Event, "command")
		switch {
		case strings.HasPrefix(command, "git push"):
			return backend.Answer(q, &ahp.Deny{Reason: "not from here <b>bold</b>"})
		case strings.HasPrefix(command, "make"):
			return backend.Answer(q, &ahp.Ask{})
		}
		return nil, nil
	}))}
	broken := hook{id: "com.example.broken", policy: ahp.FailOpen, handler: func(context.Context, []byte) ([]byte, error) {
		return []byte("<script>window.ran=1</script> \xff\xfe garbage"), nil
	}}
	s := start(t, inspect.Options{}, rules, broken)
	b := openPage(t, s.page(""))
	b.waits(`document.readyState === "complete" && document.getElementById("state").textContent === "live" && !document.getElementById("empty").hidden`)
	if snippet := b.eval(`document.getElementById("snippet").textContent`); !strings.Contains(snippet, s.server.URL+"/ahp") || !strings.Contains(snippet, "fail-closed") {
		t.Errorf("the page doesn't say how to register it: %s", snippet)
	} else if _, err := ahp.DecodeRegistration([]byte(snippet)); err != nil {
		t.Errorf("what the page says to register is refused: %v", err)
	}

	s.post(t, toolBefore("e1", "build", "git push origin"))
	s.post(t, toolBefore("e2", "build", "make all"))
	s.post(t, toolBefore("e3", hostile, hostile))
	s.post(t, toolBefore("e4", "review", strings.Repeat("<b>x", 200_000)))
	s.post(t, "\xff\xfe\x00 not a message <script>window.ran=1</script>")
	b.waits(`document.querySelectorAll("#rows tr").length === 5`)
	cells := b.eval(`[...document.querySelectorAll("#rows tr")].map((r) => r.children[1].textContent).join(" ")`)
	if cells != "invalid pass pass ask deny" {
		t.Errorf("decisions, latest first: %s", cells)
	}
	if lanes := b.eval(`document.querySelectorAll(".lane").length`); lanes != "4" {
		t.Errorf("%s lanes, want one for each session and one for none", lanes)
	}
	b.waits(`((text) => text.includes("com.example.rules\t4\t0\t") && text.includes("com.example.broken\t3\t3\t"))(document.getElementById("latency").innerText)`)

	// Light and dark, as the reader's system has it.
	shade := `getComputedStyle(document.body).backgroundColor`
	light := b.eval(shade)
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": "dark"}}}, nil)
	if dark := b.eval(shade); dark == light {
		t.Errorf("light and dark are both %s", dark)
	}
	b.screenshot("dark")
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []any{}}, nil)

	// Every entry opened, every filter used: nothing runs, nothing is markup.
	for seq := range 5 {
		b.eval(`document.querySelectorAll("#rows tr")[` + string(rune('0'+seq)) + `].click()`)
		b.waits(`document.querySelector("#detail pre") !== null && document.querySelectorAll("#rows tr.chosen").length === 1`)
	}
	b.waits(`document.getElementById("detail").innerText.includes("not from here <b>bold</b>")`)
	b.screenshot("detail")
	b.eval(`{ const f = document.getElementById("f-text"); f.value = "WINDOW.RAN"; f.dispatchEvent(new Event("input", { bubbles: true })); }`)
	b.waits(`document.getElementById("rows").innerText.includes("<script>window.ran=1</script>")`)
	b.eval(`[...document.querySelectorAll("#rows tr")].find((r) => r.innerText.includes("onerror")).click()`)
	b.waits(`document.getElementById("detail").innerText.includes("onerror")`)
	if text := b.eval(`document.body.innerText`); strings.ContainsAny(text, "\u202e\x00") || !strings.Contains(text, "⟨U+202E⟩") {
		t.Error("a character that reorders text gets into the page as it is")
	}
	b.screenshot("hostile")
	if n := b.eval(`document.querySelectorAll("main img, main svg, main script, main b").length`); n != "0" {
		t.Errorf("%s elements were made of content", n)
	}
	if ran := b.eval(`String(window.ran)`); ran != "undefined" {
		t.Error("content has run as a script")
	}
	if n := b.eval(`document.querySelectorAll("script").length`); n != "1" {
		t.Errorf("%s scripts in the page", n)
	}
	// The policy of the page is a second wall: it holds even against code of the page.
	b.eval(`(() => { const s = document.createElement("script"); try { s.textContent = "window.ran=2"; document.head.append(s); } catch {} })()`)
	b.eval(`(() => { try { document.body.setAttribute("onclick", "window.ran=2"); document.body.click(); } catch {} })()`)
	if ran := b.eval(`String(window.ran)`); ran != "undefined" {
		t.Error("the policy lets inline scripts run")
	}
}

// TestPageFilters holds that each filter narrows the list, and that a live update
// changes what is shown already.
func TestPageFilters(t *testing.T) {
	release := make(chan struct{})
	slow := hook{id: "com.example.slow", handler: judging(backend.Func(func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		if q.Event.ID == "slow" {
			<-release
			return backend.Answer(q, &ahp.Deny{Reason: "in the end"})
		}
		return nil, nil
	}))}
	s := start(t, inspect.Options{}, slow)
	b := openPage(t, s.page(""))
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.post(t, toolBefore("slow", "one", "sleep"))
	}()
	b.waits(`document.readyState === "complete" && document.querySelector("#rows").innerText.includes("pending")`)
	b.waits(`document.querySelectorAll("#f-session option").length === 2`)
	close(release)
	<-done
	b.waits(`document.querySelector("#rows").innerText.includes("deny")`)
	s.post(t, toolBefore("e2", "two", "ls"))
	s.post(t, observed(`{"id":"e3","source":"urn:test","type":"session.end","time":"2026-01-01T00:00:00Z","session":{"id":"two"},"outcome":"completed","reason":"done"}`))
	b.waits(`document.querySelectorAll("#rows tr").length === 3`)
	for _, tt := range []struct{ id, option, want string }{
		{"f-asked", "", "2"}, {"f-session", "two", "2"}, {"f-type", "session.end", "1"}, {"f-backend", "com.example.slow", "2"}, {"f-decision", "deny", "1"},
	} {
		if tt.id == "f-asked" {
			if n := b.eval(`(() => { const c = document.getElementById("f-asked"); c.click(); const n = document.querySelectorAll("#rows tr").length; c.click(); return n; })()`); n != tt.want {
				t.Errorf("without observations: %s rows, want %s", n, tt.want)
			}
			continue
		}
		n := b.eval(`(() => { const s = document.getElementById("` + tt.id + `"); s.selectedIndex = [...s.options].findIndex((o) => o.textContent === "` + tt.option + `");
			s.dispatchEvent(new Event("input", { bubbles: true })); const n = document.querySelectorAll("#rows tr").length; s.selectedIndex = 0; return n; })()`)
		if n != tt.want {
			t.Errorf("%s %s: %s rows, want %s", tt.id, tt.option, n, tt.want)
		}
	}
}
