package main

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/require"
	"github.com/abhed/abhed/internal/strictjson"
)

// slowServer is the argument with which this binary is an MCP server whose one tool,
// wait, never answers.
const slowServer = "rpc-slow-mcp-server"

func init() {
	if len(os.Args) > 1 && os.Args[1] == slowServer {
		serveSlow()
		os.Exit(0)
	}
}

func serveSlow() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var m struct {
			ID     ahp.Raw `json:"id"`
			Method string  `json:"method"`
		}
		if strictjson.Unmarshal(in.Bytes(), &m, strictjson.Options{}) != nil || m.ID == nil {
			continue
		}
		switch m.Method {
		case "initialize":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"slow","version":"1"}}}`+"\n", m.ID)
		case "tools/list":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"wait","description":"waits","inputSchema":{"type":"object"}}]}}`+"\n", m.ID)
		case "tools/call":
		default:
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`+"\n", m.ID)
		}
	}
}

// mark returns a number of seconds by which the processes of one test are known.
func mark() string { return fmt.Sprintf("86%07d", rand.IntN(10_000_000)) }

// slowParts configures an extension and an MCP server that are slow where they are
// asked to be: the extension judges a call with slowhook in it, and runs its tool
// slow, for mark seconds; mcp__srv__wait never ends. what is more of the settings.
func (s *stage) slowParts(t testing.TB, mark, what string) {
	t.Helper()
	sh := require.Path(t, "sh")
	script := `while IFS= read -r line; do
  case $line in
  *'"event":"list_tools"'*) echo '{"tools":[{"name":"slow","description":"is slow","schema":{"type":"object"},"mutates":false}]}' ;;
  *'"event":"invoke_tool"'*) sleep ` + mark + `; echo '{"result":"x"}' ;;
  *'"event":"tool_call"'*slowhook*) sleep ` + mark + `; echo '{}' ;;
  *) echo '{}' ;;
  esac
done
`
	file := filepath.Join(filepath.Dir(s.dir), "slow.sh")
	s.put(file, script)
	s.settings(`{"extensions":[{"name":"slow","command":%q,"args":[%q],"events":["tool_call"],"timeout_ms":600000,"invoke_timeout_ms":600000}],
		"mcp":{"srv":{"command":%q,"args":[%q,%q]}}%s}`, sh, file, self(t), slowServer, mark, what)
}

// process is one of the system's.
type process struct {
	pid, parent   int
	state, start  string
	command, name string
}

func processOf(pid int) (process, bool) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	end := bytes.LastIndexByte(stat, ')')
	if err != nil || end < 0 {
		return process{}, false
	}
	fields := strings.Fields(string(stat[end+1:]))
	if len(fields) < 20 {
		return process{}, false
	}
	p := process{pid: pid, state: fields[0], start: fields[19], name: string(stat[:end])}
	p.parent, _ = strconv.Atoi(fields[1])
	line, _ := os.ReadFile(filepath.Join(dir, "cmdline")) // none is left of one that has ended
	p.command = strings.ReplaceAll(string(line), "\x00", " ")
	return p, true
}

// below returns the processes that descend from a process.
func below(t testing.TB, pid int) []process {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		require.Missing(t, "procsys", err.Error())
	}
	var all []process
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			if p, ok := processOf(n); ok {
				all = append(all, p)
			}
		}
	}
	family := []int{pid}
	var found []process
	for i := 0; i < len(family); i++ {
		for _, p := range all {
			if p.parent == family[i] {
				family, found = append(family, p.pid), append(found, p)
			}
		}
	}
	return found
}

// sleepers returns the processes below the service that sleep for mark seconds.
func (c *service) sleepers(mark string) []process {
	return slices.DeleteFunc(below(c.t, c.cmd.Process.Pid), func(p process) bool { return !strings.HasPrefix(p.command, "sleep "+mark) })
}

// asleep waits until n processes below the service sleep for mark seconds.
func (c *service) asleep(mark string, n int) {
	c.t.Helper()
	within(c.t, fmt.Sprintf("%d processes that sleep", n), func() bool { return len(c.sleepers(mark)) == n })
}

// within waits until is is true.
func within(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patient); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}

// gone waits until none of the processes is left, and fails the test if one stays.
func gone(t testing.TB, list []process) {
	t.Helper()
	var left []process
	for deadline := time.Now().Add(patient); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		left = left[:0]
		for _, p := range list {
			if now, ok := processOf(p.pid); ok && now.start == p.start && now.state != "Z" {
				left = append(left, p)
			}
		}
		if len(left) == 0 {
			return
		}
	}
	t.Errorf("processes that were left: %+v", left)
}
