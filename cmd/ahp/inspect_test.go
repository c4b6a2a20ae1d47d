package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestInspectServes holds that the built command serves the page with what files
// hold, takes messages with the token alone, ends with SIGTERM, and keeps its secret
// from who doesn't ask for the page.
func TestInspectServes(t *testing.T) {
	exe, dir := builtAHP(t), t.TempDir()
	lines := filepath.Join(dir, "lines.jsonl")
	if err := os.WriteFile(lines, []byte(`{"jsonrpc":"2.0","method":"hooks/observe","params":{"protocolVersion":"draft","event":`+toolEvent+"}}\n\nnonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "inspect", "--json-lines", lines, "--token-env", "INSPECT_TOKEN")
	cmd.Env = append(os.Environ(), "INSPECT_TOKEN=s3cret-value")
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	bound := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer bound.Stop()
	said := bufio.NewScanner(out)
	var at [2]string
	for i, name := range []string{"page: ", "messages: "} {
		if !said.Scan() || !strings.HasPrefix(said.Text(), name) {
			t.Fatalf("it said %q", said.Text())
		}
		at[i] = strings.TrimPrefix(said.Text(), name)
	}
	if status, body := fetch(t, "GET", at[0], ""); status != 200 || !strings.Contains(body, "<title>ahp inspect</title>") {
		t.Errorf("the page: %d", status)
	}
	for i, want := range []string{`"decision":"observed"`, `"decision":"invalid"`} {
		if status, body := fetch(t, "GET", at[0]+"entry/"+[]string{"1", "2"}[i], ""); status != 200 || !strings.Contains(body, want) {
			t.Errorf("entry %d: %d %s", i+1, status, body)
		}
	}
	for token, want := range map[string]int{"": 401, "another": 401, "s3cret-value": 202} {
		if status, body := fetch(t, "POST", at[1], token); status != want || body != "" {
			t.Errorf("token %q: %d, want %d", token, status, want)
		}
	}
	secret := strings.Split(at[0], "/")[3]
	for _, url := range []string{at[1], strings.TrimSuffix(at[0], secret+"/"), at[0][:len(at[0])-2]} {
		if status, body := fetch(t, "GET", url, ""); status == 200 || strings.Contains(body, secret) {
			t.Errorf("%s: %d", url, status)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// fetch makes a request, with the token if there is one, and returns its status and body.
func fetch(t *testing.T, method, url, token string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(`{"jsonrpc":"2.0","method":"hooks/observe","params":{"protocolVersion":"draft","event":`+toolEvent+`}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}
