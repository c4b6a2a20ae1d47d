package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// events are those that a handler can have.
var events = []string{
	"session_start", "session_end", "user_prompt_submit", "before_agent_start", "context", "tool_call",
	"permission_request", "tool_result", "before_compact", "turn_end", "subagent_end", "notification",
}

// Request is what Abhed asks. Members that an event doesn't have are empty.
type Request struct {
	Event     string          `json:"event"`
	SessionID string          `json:"session_id"`
	Seq       int64           `json:"seq"`
	CallID    string          `json:"call_id"`
	Turn      int             `json:"turn"`
	Agent     Agent           `json:"agent"`
	Tool      string          `json:"tool"`
	Args      json.RawMessage `json:"args"`
	Round     int             `json:"round"`
	Original  json.RawMessage `json:"original"`
	Final     bool            `json:"final"`
	Content   string          `json:"content"`
	IsError   bool            `json:"is_error"`
	System    string          `json:"system"`
	Messages  []Message       `json:"messages"`
	Workspace string          `json:"workspace"`
	Model     string          `json:"model"`
	Mode      string          `json:"mode"`
	Reason    string          `json:"reason"`
}

// Agent says whose run it is: the main agent has depth 0.
type Agent struct {
	ID    string `json:"id"`
	Depth int    `json:"depth"`
}

// Message is one message of a conversation.
type Message struct {
	Index   int    `json:"index"`
	Role    string `json:"role"`
	Content string `json:"content"`
	Tool    string `json:"tool"`
	CallID  string `json:"call_id"`
}

// Reply is an answer; the zero Reply has no opinion. Pointers and Keep tell absent
// (nil) from empty.
type Reply struct {
	Block   bool            `json:"block,omitempty"`
	Ask     bool            `json:"ask,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	Args    json.RawMessage `json:"args,omitempty"`
	Content *string         `json:"content,omitempty"`
	IsError *bool           `json:"is_error,omitempty"`
	Keep    *[]int          `json:"keep,omitempty"`
	System  string          `json:"system,omitempty"`
	Summary string          `json:"summary,omitempty"`
	Cancel  bool            `json:"cancel,omitempty"`
	Tools   []Tool          `json:"tools,omitempty"`
	Result  *string         `json:"result,omitempty"`
	Log     string          `json:"log,omitempty"`
}

// Tool is a tool that the extension provides.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	Mutates     bool            `json:"mutates"`
	// Run gets the arguments. An error becomes a result that says so.
	Run func(args json.RawMessage) (string, error) `json:"-"`
}

// Serve answers from in to out until in ends: list_tools and invoke_tool by tools,
// every other event by its handler. An error of a handler ends it, and with it the
// extension: what that means is its on_failure.
func Serve(in io.Reader, out io.Writer, handlers map[string]func(*Request) (Reply, error), tools ...Tool) error {
	for event := range handlers {
		if !slices.Contains(events, event) {
			return fmt.Errorf("there is no event %q; the events are %s", event, strings.Join(events, ", "))
		}
	}
	for lines := bufio.NewReader(in); ; {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var req Request
		if err := json.Unmarshal(line, &req); err != nil {
			return err
		}
		rep, err := answer(&req, handlers, tools)
		if err != nil {
			return fmt.Errorf("%s: %w", req.Event, err)
		}
		var buf bytes.Buffer // one write for each reply
		if err := json.NewEncoder(&buf).Encode(rep); err != nil {
			return err
		}
		if _, err := out.Write(buf.Bytes()); err != nil {
			return err
		}
	}
}

func answer(req *Request, handlers map[string]func(*Request) (Reply, error), tools []Tool) (Reply, error) {
	switch req.Event {
	case "list_tools":
		return Reply{Tools: tools}, nil
	case "invoke_tool":
		for _, t := range tools {
			if t.Name == req.Tool {
				text, err := t.Run(req.Args)
				failed := err != nil
				if failed {
					text = err.Error()
				}
				return Reply{Result: &text, IsError: &failed}, nil
			}
		}
		return Reply{}, fmt.Errorf("there is no tool %q", req.Tool)
	}
	if h := handlers[req.Event]; h != nil {
		return h(req)
	}
	return Reply{}, nil
}

// run serves standard input and output. What is printed by accident must not be
// taken for a reply, so os.Stdout becomes standard error.
func run(handlers map[string]func(*Request) (Reply, error), tools ...Tool) {
	out := os.Stdout
	os.Stdout = os.Stderr
	if err := Serve(os.Stdin, out, handlers, tools...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
