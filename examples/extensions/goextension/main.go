// Command goextension shows what an extension of Abhed can do, in Go with nothing
// but the standard library. The other examples do the same. serve.go is the part to
// copy.
package main

import (
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
)

var key = regexp.MustCompile(`AKIA[A-Z0-9]{16}`)

func main() {
	run(map[string]func(*Request) (Reply, error){
		"user_prompt_submit": prompt,
		"before_agent_start": system,
		"context":            context,
		"tool_call":          call,
		"tool_result":        result,
		"before_compact":     compact,
		"turn_end":           turnEnd,
	}, Tool{
		Name: "word_count", Description: "Count the words of a text", Run: wordCount,
		Schema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`),
	})
}

func prompt(req *Request) (Reply, error) {
	if strings.Contains(req.Content, "AKIA") {
		return Reply{Block: true, Reason: "the message holds an access key; take it out and send it again"}, nil
	}
	return Reply{}, nil
}

func system(*Request) (Reply, error) {
	return Reply{System: "Run the tests before you say that you are done."}, nil
}

// context leaves out whatever holds a private key.
func context(req *Request) (Reply, error) {
	keep := []int{}
	for _, m := range req.Messages {
		if !strings.Contains(m.Content, "PRIVATE KEY") {
			keep = append(keep, m.Index)
		}
	}
	return Reply{Keep: &keep}, nil
}

func call(req *Request) (Reply, error) {
	if req.Tool != "bash" {
		return Reply{}, nil
	}
	// Raw values keep what isn't changed as the model wrote it.
	var args map[string]json.RawMessage
	if err := json.Unmarshal(req.Args, &args); err != nil {
		return Reply{}, err
	}
	var command string
	_ = json.Unmarshal(args["command"], &command) // absent, or no text: nothing to judge
	switch {
	case strings.Contains(command, "rm -rf"):
		return Reply{Block: true, Reason: "rm -rf isn't run here; name what is to go"}, nil
	case strings.Contains(command, "git push"):
		return Reply{Ask: true, Reason: "it publishes"}, nil
	case strings.Contains(command, "http://"):
		changed, err := json.Marshal(strings.ReplaceAll(command, "http://", "https://"))
		if err != nil {
			return Reply{}, err
		}
		args["command"] = changed
		all, err := json.Marshal(args)
		return Reply{Args: all}, err
	}
	return Reply{}, nil
}

func result(req *Request) (Reply, error) {
	if clean := key.ReplaceAllString(req.Content, "[redacted]"); clean != req.Content {
		return Reply{Content: &clean}, nil
	}
	return Reply{}, nil
}

func compact(req *Request) (Reply, error) {
	summary := "What the person asked for:"
	for _, m := range req.Messages {
		if strings.Contains(m.Content, "keep the history") {
			return Reply{Cancel: true}, nil
		}
		if m.Role == "user" {
			summary += "\n- " + m.Content
		}
	}
	return Reply{Summary: summary}, nil
}

func turnEnd(*Request) (Reply, error) { return Reply{Log: "a turn has ended"}, nil }

func wordCount(raw json.RawMessage) (string, error) {
	var args struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(raw, &args); err != nil {
		return "", err
	}
	if args.Text == "" {
		return "", errors.New("there is no text to count in")
	}
	return strconv.Itoa(len(strings.Fields(args.Text))), nil
}
