package abhed_test

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/strictjson"
)

// With one of these as its first argument the test's own binary plays an extension, or
// an MCP server, by the file that the second argument names.
const (
	playExtension = "play-extension"
	playServer    = "play-mcp-server"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case playExtension:
			os.Exit(play(os.Args[2], (*part).extension))
		case playServer:
			os.Exit(play(os.Args[2], (*part).server))
		}
	}
	flag.Parse()
	// A session waits for the disk and for processes most of the time.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// Deeds of a player besides a reply.
const (
	dies  = "!dies"
	hangs = "!hangs"
)

// line says what a player does about a request.
type line struct {
	// On is the event, "" any. Has must be in the request, wherever.
	On, Has string
	// Do is the text to write, or a deed.
	Do string
}

// player is an extension of a stage: it answers by the first line that fits, else {}.
type player struct {
	name  string
	lines []line
	// more holds further members of its configuration, each with a comma before it.
	more string
}

// part is what a played process has.
type part struct {
	Log   string
	Lines []line
	Tools []string // of a server

	log *os.File
}

// play answers each line on standard input.
func play(file string, answer func(*part, string) string) int {
	var p part
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err == nil {
		p.log, err = os.OpenFile(p.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		switch text := answer(&p, in.Text()); text {
		case "":
		case dies:
			return 3
		case hangs:
			for in.Scan() {
			}
		default:
			fmt.Println(text)
		}
	}
	return 0
}

func (p *part) note(text string) { fmt.Fprintln(p.log, text) }

func (p *part) extension(request string) string {
	p.note(request)
	for _, l := range p.Lines {
		if l.On != "" && !strings.HasPrefix(request, `{"event":"`+l.On+`"`) {
			continue
		}
		if strings.Contains(request, l.Has) {
			return l.Do
		}
	}
	return "{}"
}

// server is an MCP server that notes each call, and gives its arguments as the result.
func (p *part) server(request string) string {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Name      string
			Arguments json.RawMessage
		}
	}
	if json.Unmarshal([]byte(request), &m) != nil || m.ID == nil {
		return ""
	}
	result := ""
	switch m.Method {
	case "initialize":
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"box","version":"1"}}`
	case "tools/list":
		result = `{"tools":[` + strings.Join(p.Tools, ",") + `]}`
	case "tools/call":
		p.note(m.Params.Name + " " + string(m.Params.Arguments))
		text, _ := strictjson.AppendString(nil, "kept "+string(m.Params.Arguments))
		result = `{"content":[{"type":"text","text":` + string(text) + `}]}`
	default:
		return `{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32601,"message":"no such method"}}`
	}
	return `{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + result + `}`
}

// cast writes what the process plays, and returns the members of its configuration.
func (s *stage) cast(kind, name string, p part) string {
	s.t.Helper()
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	p.Log = s.notes(kind, name)
	data, err := json.Marshal(p)
	if err != nil {
		s.t.Fatal(err)
	}
	s.put("home/"+name+".json", string(data))
	return fmt.Sprintf(`"command":%q,"args":[%q,%q],"env":{"GORACE":"atexit_sleep_ms=0"}`, self, kind, s.base+"/home/"+name+".json")
}

// notes is where a player writes what it is told. A server is confined, and can write
// in the workspace alone.
func (s *stage) notes(kind, name string) string {
	if kind == playServer {
		return s.dir + "/heard-" + name
	}
	return s.base + "/home/heard-" + name
}

// configure returns the extension's entry in the settings.
func (s *stage) configure(p player) string {
	s.players = append(s.players, p.name)
	return fmt.Sprintf(`{"name":%q,%s%s}`, p.name, s.cast(playExtension, p.name, part{Lines: p.lines}), p.more)
}

// heard returns what a player was told, each line with the player's name before it.
func (s *stage) heard(name string) []string {
	kind := playServer
	if slices.Contains(s.players, name) {
		kind = playExtension
	}
	data, err := os.ReadFile(s.notes(kind, name))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	var out []string
	for text := range strings.Lines(string(data)) {
		text = strings.ReplaceAll(strings.TrimSuffix(text, "\n"), s.base, "BASE")
		out = append(out, name+": "+volatile.ReplaceAllString(text, "#"))
	}
	return out
}

// allHeard returns what all players were told.
func (s *stage) allHeard() []string {
	var out []string
	for _, name := range s.players {
		out = append(out, s.heard(name)...)
	}
	return out
}
