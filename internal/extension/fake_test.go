package extension_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"
)

// TestMain makes the test binary an extension when fakeEnv is set: a program with
// a menu of faults.
func TestMain(m *testing.M) {
	if os.Getenv(fakeEnv) != "" {
		fake()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

const (
	fakeEnv = "FAKE_EXTENSION"
	// fakeLog names a file to which every request line is appended.
	fakeLog = "FAKE_LOG"
	// fakeStart holds an action to do before the first read.
	fakeStart = "FAKE_START"
	// fakeOn begins the names of the variables that hold the action for an event:
	// the reply to write, or one of the actions of act. Unset means {}.
	fakeOn = "FAKE_ON_"
)

func fake() {
	act(os.Getenv(fakeStart), nil)
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		if name := os.Getenv(fakeLog); name != "" {
			f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				panic(err)
			}
			f.Write(line)
			f.Close()
		}
		var req map[string]jsontext.Value
		if err := json.Unmarshal(line, &req); err != nil {
			panic(err)
		}
		action, ok := os.LookupEnv(fakeOn + text(req["event"]))
		if !ok {
			action = "{}"
		}
		act(action, req)
	}
}

func text(v jsontext.Value) string {
	var s string
	if json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

// act does one action; several are separated by " && ".
func act(action string, req map[string]jsontext.Value) {
	for step := range strings.SplitSeq(action, " && ") {
		name, arg, _ := strings.Cut(step, " ")
		switch name {
		case "":
		case "@hang":
			time.Sleep(time.Hour)
		case "@exit":
			code, _ := strconv.Atoi(arg)
			os.Exit(code)
		case "@stderr":
			fmt.Fprintln(os.Stderr, arg)
		case "@raw": // with Go escapes, no line end added
			s, err := strconv.Unquote(arg)
			if err != nil {
				panic(err)
			}
			os.Stdout.WriteString(s)
		case "@wait": // until somebody opens the FIFO for writing
			f, err := os.Open(arg)
			if err == nil {
				io.Copy(io.Discard, f)
				f.Close()
			}
		case "@closeout":
			os.Stdout.Close()
		case "@endless":
			os.Stdout.WriteString(`{"log":"`)
			for chunk := bytes.Repeat([]byte("x"), 64<<10); ; {
				if _, err := os.Stdout.Write(chunk); err != nil {
					os.Exit(1)
				}
			}
		case "@big": // a reply of exactly that many bytes
			n, _ := strconv.Atoi(arg)
			fmt.Printf("{\"log\":\"%s\"}\n", strings.Repeat("x", n-len(`{"log":""}`)))
		case "@summary": // of that many bytes
			n, _ := strconv.Atoi(arg)
			reply(map[string]any{"summary": strings.Repeat("s", n)})
		case "@given": // the text in that member of the arguments
			var args map[string]jsontext.Value
			_ = json.Unmarshal(req["args"], &args)
			os.Stdout.WriteString(text(args[arg]) + "\n")
		case "@append":
			reply(map[string]any{"content": text(req["content"]) + arg})
		case "@replace":
			from, to, _ := strings.Cut(arg, " ")
			reply(map[string]any{"content": strings.ReplaceAll(text(req["content"]), from, to)})
		case "@set": // one member of the arguments
			member, value, _ := strings.Cut(arg, " ")
			var args map[string]any
			_ = json.Unmarshal(req["args"], &args)
			args[member] = value
			reply(map[string]any{"args": args})
		case "@more": // longer by arg at every asking
			member, value, _ := strings.Cut(arg, " ")
			var args map[string]any
			_ = json.Unmarshal(req["args"], &args)
			args[member] = fmt.Sprint(args[member], value)
			reply(map[string]any{"args": args})
		case "@seq": // the request's number, that many off
			off, _ := strconv.Atoi(arg)
			n, _ := strconv.Atoi(string(req["seq"]))
			reply(map[string]any{"seq": n + off})
		case "@pid":
			reply(map[string]any{"result": strconv.Itoa(os.Getpid())})
		default:
			os.Stdout.WriteString(step + "\n")
		}
	}
}

func reply(v map[string]any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	os.Stdout.Write(append(b, '\n'))
}
