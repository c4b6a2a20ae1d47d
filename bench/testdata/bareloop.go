// Command bareloop is the least agent that makes the requests of a scripted session: no
// gate, no record, no rules, no sandbox. It is the peer of the session benchmarks.
//
// usage: bareloop URL HEAD TAIL: files with what a request has before and after the
// messages that are added.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
)

type call struct {
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type chunk struct {
	Choices []struct {
		Delta struct {
			Content   string `json:"content"`
			ToolCalls []call `json:"tool_calls"`
		} `json:"delta"`
	} `json:"choices"`
}

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(url, headFile, tailFile string) error {
	head, err := os.ReadFile(headFile)
	if err != nil {
		return err
	}
	tail, err := os.ReadFile(tailFile)
	if err != nil {
		return err
	}
	messages := head
	for {
		text, c, err := ask(url, append(messages[:len(messages):len(messages)], tail...))
		if err != nil {
			return err
		}
		if c == nil {
			fmt.Println(text)
			return nil
		}
		var args struct{ Path string }
		if err := json.Unmarshal([]byte(c.Function.Arguments), &args); err != nil {
			return err
		}
		data, err := os.ReadFile(args.Path)
		if err != nil {
			return err
		}
		said, err := json.Marshal(map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{"id": c.ID, "type": "function", "function": c.Function}}})
		if err != nil {
			return err
		}
		result, err := json.Marshal(map[string]any{"role": "tool", "tool_call_id": c.ID, "content": string(data)})
		if err != nil {
			return err
		}
		messages = append(append(append(append(messages, ','), said...), ','), result...)
	}
}

// ask makes one request and reads its stream.
func ask(url string, body []byte) (text string, c *call, err error) {
	req, err := http.NewRequest("POST", url+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return "", nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", nil, fmt.Errorf("status %s", resp.Status)
	}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var k chunk
		if err := json.Unmarshal([]byte(data), &k); err != nil {
			return "", nil, err
		}
		for _, choice := range k.Choices {
			text += choice.Delta.Content
			for _, d := range choice.Delta.ToolCalls {
				if c == nil {
					c = &call{}
				}
				if d.ID != "" {
					c.ID = d.ID
				}
				c.Function.Name += d.Function.Name
				c.Function.Arguments += d.Function.Arguments
			}
		}
	}
	return text, c, lines.Err()
}
