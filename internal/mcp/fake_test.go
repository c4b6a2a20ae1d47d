package mcp_test

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"

	"github.com/abhed/abhed/internal/strictjson"
)

// The test binary is also the server that the tests talk to: with serverArg as its
// first argument it plays the script that is the second, or is in the file that the
// second names after an @.
const (
	serverArg = "play-mcp-server"
	parentArg = "play-parent"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case serverArg:
			os.Exit(play(os.Args[2]))
		case parentArg:
			playParent(os.Args[2])
		}
	}
	goleak.VerifyTestMain(m)
}

// script says how the fake server behaves.
type script struct {
	// Tools are the entries of its list; ToolsFile, if set, is read at every list
	// instead.
	Tools     []string
	ToolsFile string
	// Log gets a line for every message that it receives.
	Log string
	// Exit makes it say so and exit with this code instead of answering initialize.
	Exit int
	// Silent makes it answer nothing at all.
	Silent bool
	// Noise makes it write lines that are no messages, and notifications.
	Noise bool
	// Stubborn keeps it running when its input ends.
	Stubborn bool
	// OldSchool makes it end at the first message if that isn't initialize.
	OldSchool bool
	// Refuse makes it refuse initialize once per process with this code.
	Refuse int
	// PageSize cuts the list into pages.
	PageSize int
	// ListHangs makes it not answer tools/list, ListExits exit with this code there.
	ListHangs bool
	ListExits int
	// Deaf makes it stop reading once it has listed its tools.
	Deaf bool
	// Listen makes it a server over HTTP at this address, which it writes to Addr.
	Listen, Addr string
}

func (s script) arg() string {
	text, err := strictjson.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// fake is a running fake server.
type fake struct {
	script
	out *bufio.Writer
	in  *bufio.Scanner
	log *os.File
	web *webFake // over HTTP
}

type message struct {
	ID     jsontext.Value `json:"id"`
	Method string         `json:"method"`
	Params jsontext.Value `json:"params"`
	Result jsontext.Value `json:"result"`
}

func play(arg string) int {
	f := &fake{out: bufio.NewWriter(os.Stdout), in: bufio.NewScanner(os.Stdin)}
	text := []byte(arg)
	if file, ok := strings.CutPrefix(arg, "@"); ok {
		text, _ = os.ReadFile(file)
	}
	if err := strictjson.Unmarshal(text, &f.script, strictjson.Options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	f.in.Buffer(nil, 32<<20)
	if f.Log != "" {
		f.log, _ = os.OpenFile(f.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		f.note("pid %d", os.Getpid())
	}
	if f.Exit != 0 {
		fmt.Fprintln(os.Stderr, "cannot read the file of settings, token "+os.Getenv("FAKE_TOKEN"))
		return f.Exit
	}
	if f.Listen != "" {
		return f.serve()
	}
	for m := f.next(); m != nil; m = f.next() {
		f.answer(m)
	}
	if f.Stubborn {
		select {}
	}
	return 0
}

func (f *fake) note(format string, a ...any) {
	if f.log != nil {
		fmt.Fprintf(f.log, format+"\n", a...)
	}
}

// next returns the next message, nil at the end of the input.
func (f *fake) next() *message {
	if f.web != nil {
		return f.web.next()
	}
	for f.in.Scan() {
		var m message
		if strictjson.Unmarshal(f.in.Bytes(), &m, strictjson.Options{}) != nil {
			continue
		}
		f.note("%s %s", m.Method, m.Params)
		return &m
	}
	return nil
}

func (f *fake) write(format string, a ...any) {
	if f.web != nil {
		format = "data: " + format + "\n"
	}
	fmt.Fprintf(f.out, format+"\n", a...)
	f.out.Flush()
	if f.web != nil {
		f.web.flush()
	}
}

func (f *fake) result(m *message, format string, a ...any) {
	if f.Noise {
		f.write("starting up ...")
		f.write(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"hello"}}`)
		f.write(`{"jsonrpc":"2.0","method":"notifications/unheard/of"}`)
		f.write(`{"jsonrpc":"1.0","method":"old"}`)
		f.write(`[1,2]`)
		f.write(`{"jsonrpc":"2.0","id":4711,"result":{}}`)
		f.write("")
	}
	f.write(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, fmt.Sprintf(format, a...))
}

func (f *fake) answer(m *message) {
	switch {
	case f.Silent, f.ListHangs && m.Method == "tools/list":
		f.hang()
	case f.ListExits != 0 && m.Method == "tools/list":
		os.Exit(f.ListExits)
	case f.OldSchool && m.Method != "initialize":
		os.Exit(5)
	case m.Method == "initialize" && f.Refuse != 0:
		f.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"not this way"}}`, m.ID, f.Refuse)
	case m.Method == "initialize":
		f.OldSchool = false
		f.result(m, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"fake","version":"1"}}`)
	case m.Method == "server/discover":
		f.result(m, `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete","ttlMs":0,"cacheScope":"private"}`)
	case m.Method == "tools/list":
		f.list(m)
	case m.Method == "tools/call":
		f.call(m)
	case m.ID != nil && m.Method != "":
		f.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID)
	}
}

func (f *fake) list(m *message) {
	tools := f.Tools
	if f.ToolsFile != "" {
		data, err := os.ReadFile(f.ToolsFile)
		if err != nil {
			os.Exit(98)
		}
		tools = strings.Split(strings.TrimSpace(string(data)), "\n")
	}
	if f.PageSize == 0 {
		f.result(m, `{"tools":[%s]}`, strings.Join(tools, ","))
		if f.Deaf {
			select {}
		}
		return
	}
	var p struct {
		Cursor string `json:"cursor"`
	}
	_ = strictjson.Unmarshal(m.Params, &p, strictjson.Options{})
	from, _ := strconv.Atoi(p.Cursor)
	to := min(from+f.PageSize, len(tools))
	next := ""
	if to < len(tools) {
		next = fmt.Sprintf(`,"nextCursor":"%d"`, to)
	}
	f.result(m, `{"tools":[%s]%s}`, strings.Join(tools[from:to], ","), next)
}

func text(s string) string {
	quoted, _ := strictjson.AppendString(nil, s)
	return fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, quoted)
}

// call does what the name of the tool says.
func (f *fake) call(m *message) {
	var p struct {
		Name      string         `json:"name"`
		Arguments jsontext.Value `json:"arguments"`
	}
	if strictjson.Unmarshal(m.Params, &p, strictjson.Options{}) != nil {
		os.Exit(97)
	}
	switch p.Name {
	case "crash":
		fmt.Fprintln(os.Stderr, "out of luck, token "+os.Getenv("FAKE_TOKEN"))
		os.Exit(3)
	case "hang":
		f.hang()
	case "deep":
		f.result(m, `{"content":[],"structuredContent":%s}`, strings.Repeat("[", 600)+strings.Repeat("]", 600))
	case "pieces":
		f.result(m, `{"content":[{"type":"text","text":"first"}%s]}`, strings.Repeat(",0", 1<<20))
	case "wide":
		f.write(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":[0%s]}}`, strings.Repeat(",0", 1<<20))
		f.result(m, "%s", text("told"))
	case "flood":
		f.flood()
	case "inputs":
		f.inputs(m, p.Arguments)
	case "askmany":
		f.askMany(m, 10)
	case "huge":
		f.result(m, "%s", text("BEGIN"+strings.Repeat("é", 1<<20)+"END"))
	case "monster":
		f.write(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}`, m.ID, strings.Repeat("x", 17<<20))
	case "broken":
		f.write(`{"jsonrpc":"2.0","id":%s,"result":{"content":[],"content":[]}}`, m.ID)
	case "badbytes":
		f.result(m, "%s", `{"content":[{"type":"text","text":"caf`+"\xe9"+`"}]}`)
	case "raw":
		f.result(m, "%s", p.Arguments)
	case "refuse":
		f.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no, %s"}}`, m.ID, os.Getenv("FAKE_TOKEN"))
	case "change":
		f.write(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		f.result(m, "%s", text("changed"))
	case "ask":
		f.ask(m, p.Arguments)
	case "roots":
		f.write(`{"jsonrpc":"2.0","id":"r","method":"roots/list"}`)
		f.result(m, "%s", text(string(f.next().Result)))
	case "sample":
		f.write(`{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`)
		f.next()
		f.result(m, "%s", text("asked"))
	case "askpanic":
		f.write(`{"jsonrpc":"2.0","id":"p","method":"elicitation/create"}`)
		f.result(m, "%s", text(string(f.next().Result)))
	default:
		f.result(m, "%s", text(p.Name+" "+string(p.Arguments)))
	}
}

// ask puts the params in the arguments to the person and gives the answer as its
// result; an argument "late" puts them after the result instead, once there
// is a file beside the log.
func (f *fake) ask(m *message, args jsontext.Value) {
	var a struct {
		Params jsontext.Value `json:"params"`
		Late   bool           `json:"late"`
	}
	if strictjson.Unmarshal(args, &a, strictjson.Options{}) != nil {
		os.Exit(96)
	}
	if a.Late {
		f.result(m, "%s", text("done"))
		for { // until the test has seen it
			if _, err := os.Stat(f.Log + ".go"); err == nil {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	f.write(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":%s}`, a.Params)
	for answer := f.next(); answer != nil; answer = f.next() {
		if string(answer.ID) != `"q"` {
			continue
		}
		f.note("answer %s", answer.Result)
		break
	}
	if !a.Late {
		f.result(m, "%s", text("answered"))
	}
}
