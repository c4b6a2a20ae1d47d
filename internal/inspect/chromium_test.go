package inspect_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/require"
)

// browser is a headless Chromium with one page, driven over its debugging pipe.
type browser struct {
	t       *testing.T
	in      io.Writer
	out     *bufio.Reader
	last    int
	session string
	noise   []string // what the page's console said
}

// openPage starts a browser and opens url in it. It ends with the test.
func openPage(t *testing.T, url string) *browser {
	t.Helper()
	exe := require.Path(t, "chromium")
	toR, toW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromR, fromW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--window-size=1400,900", "--user-data-dir="+filepath.Join(t.TempDir(), "profile"),
		"--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{toR, fromW}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	toR.Close()
	fromW.Close()
	bound := time.AfterFunc(4*time.Minute, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	b := &browser{t: t, in: toW, out: bufio.NewReader(fromR)}
	t.Cleanup(func() {
		bound.Stop()
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		cmd.Wait()
		toW.Close()
		fromR.Close()
	})
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	b.call("Runtime.enable", nil, nil)
	b.call("Log.enable", nil, nil)
	b.call("Page.enable", nil, nil)
	b.call("Page.navigate", map[string]any{"url": url}, nil)
	return b
}

// call runs one command of the debugging protocol.
func (b *browser) call(method string, params, result any) {
	b.t.Helper()
	b.last++
	msg, err := json.Marshal(map[string]any{"id": b.last, "method": method, "params": params, "sessionId": b.session})
	if err != nil {
		b.t.Fatal(err)
	}
	if b.session == "" {
		msg, _ = json.Marshal(map[string]any{"id": b.last, "method": method, "params": params})
	}
	if _, err := b.in.Write(append(msg, 0)); err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	for {
		text, err := b.out.ReadBytes(0)
		if err != nil {
			b.t.Fatalf("%s: the browser has ended: %v", method, err)
		}
		var got struct {
			ID     int
			Method string
			Params json.RawMessage
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if err := json.Unmarshal(text[:len(text)-1], &got); err != nil {
			b.t.Fatal(err)
		}
		switch {
		case got.ID == 0:
			if got.Method == "Log.entryAdded" || got.Method == "Runtime.exceptionThrown" || got.Method == "Runtime.consoleAPICalled" || strings.HasPrefix(got.Method, "Page.javascriptDialog") {
				b.noise = append(b.noise, got.Method+" "+string(got.Params))
			}
		case got.ID == b.last && got.Error != nil:
			b.t.Fatalf("%s: %s", method, got.Error.Message)
		case got.ID == b.last:
			if result != nil {
				if err := json.Unmarshal(got.Result, result); err != nil {
					b.t.Fatal(err)
				}
			}
			return
		}
	}
}

// eval returns what an expression is in the page, as a text.
func (b *browser) eval(expression string) string {
	b.t.Helper()
	var got struct {
		Result struct {
			Value any
		}
		ExceptionDetails *struct{ Text string }
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &got)
	if got.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, got.ExceptionDetails.Text)
	}
	return fmt.Sprint(got.Result.Value)
}

// waits waits until a condition holds in the page.
func (b *browser) waits(condition string) {
	b.t.Helper()
	held := b.eval(`new Promise((done) => {
		const until = Date.now() + 60000;
		const look = () => { if (` + condition + `) done(true); else if (Date.now() > until) done(false); else setTimeout(look, 20); };
		look();
	})`)
	if held != "true" {
		b.t.Fatalf("the page never came to %s; it says:\n%s\nconsole: %q", condition, b.eval("document.body.innerText"), b.noise)
	}
}

// screenshot writes the page as a picture into the folder that INSPECT_SCREENSHOT
// names, for people who want to look at it.
func (b *browser) screenshot(name string) {
	dir := os.Getenv("INSPECT_SCREENSHOT")
	if dir == "" {
		return
	}
	var got struct{ Data string }
	b.call("Page.captureScreenshot", nil, &got)
	data, err := base64.StdEncoding.DecodeString(got.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), data, 0o600)
	}
	if err != nil {
		b.t.Error(err)
	}
}
