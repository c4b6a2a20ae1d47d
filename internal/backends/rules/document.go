package rules

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/config"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/strictjson"
)

// maxDocument bounds a file of rules, in bytes.
const maxDocument = 1 << 20

// Document is a file of rules that was read and not yet compiled.
type Document struct {
	lists             policy.RuleLists
	runners, harmless []string
}

// file is the shape of a file of rules. The members are those that Abhed's settings
// have under permissions.
type file struct {
	Rules *struct {
		Deny        []string `json:"deny"`
		Ask         []string `json:"ask"`
		Allow       []string `json:"allow"`
		Runners     []string `json:"runners"`
		EnvHarmless []string `json:"env_harmless"`
	} `json:"rules"`
}

// ReadFile reads the rules in a file: one JSON object
//
//	{"rules": {"deny": ["bash(git push*)"], "ask": [], "allow": [], "runners": [], "env_harmless": []}}
//
// in which every list may be missing, with // and /* */ comments and trailing
// commas. An error names file, line and column.
func ReadFile(name string) (*Document, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o002 != 0 {
		return nil, fmt.Errorf("%s: found mode %v, which lets everybody write the rules; expected nobody but you and your group: chmod o-w", name, info.Mode().Perm())
	}
	data, err := io.ReadAll(io.LimitReader(f, maxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > maxDocument {
		return nil, fmt.Errorf("%s: more than %d bytes, expected a file of rules", name, maxDocument)
	}
	return Parse(name, data)
}

// Parse reads rules as ReadFile does; name is what messages call the file.
func Parse(name string, data []byte) (*Document, error) {
	plain, open := config.Plain(data)
	if open >= 0 {
		return nil, at(name, data, int64(open), "a comment that never ends, expected */")
	}
	var f file
	if err := strictjson.Unmarshal(plain, &f, strictjson.Options{MaxBytes: maxDocument, RejectUnknown: true}); err != nil {
		var bad *strictjson.Error
		if !errors.As(err, &bad) {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		msg := bad.Msg
		if bad.Pointer != "" {
			msg = bad.Pointer + ": " + msg
		}
		return nil, at(name, data, bad.Offset, msg+`; expected {"rules":{"deny":[…],"ask":[…],"allow":[…],"runners":[…],"env_harmless":[…]}}`)
	}
	if f.Rules == nil {
		return nil, at(name, data, 0, `no member "rules", expected {"rules":{"deny":[…],"ask":[…]}}`)
	}
	where := offsets(plain)
	texts := func(list string, rules []string) []policy.RuleText {
		out := make([]policy.RuleText, len(rules))
		for i, text := range rules {
			key := list + "[" + strconv.Itoa(i) + "]"
			line, column := strictjson.LineColumn(data, where["/rules/"+list+"/"+strconv.Itoa(i)])
			out[i] = policy.RuleText{Text: text, Origin: policy.Origin{File: name, Line: line, Column: column, Key: "rules." + key}}
		}
		return out
	}
	d := &Document{runners: f.Rules.Runners, harmless: f.Rules.EnvHarmless}
	d.lists = policy.RuleLists{Deny: texts("deny", f.Rules.Deny), Ask: texts("ask", f.Rules.Ask), Allow: texts("allow", f.Rules.Allow)}
	return d, nil
}

func at(name string, data []byte, offset int64, msg string) error {
	line, column := strictjson.LineColumn(data, offset)
	return fmt.Errorf("%s:%d:%d: %s", name, line, column, msg)
}

// offsets returns where each string of valid JSON starts, by its pointer.
func offsets(plain []byte) map[string]int64 {
	out := map[string]int64{}
	dec := jsontext.NewDecoder(bytes.NewReader(plain))
	for {
		before := dec.InputOffset()
		tok, err := dec.ReadToken()
		if err != nil {
			return out
		}
		if tok.Kind() == '"' {
			quote := bytes.IndexByte(plain[before:], '"')
			out[string(dec.StackPointer())] = before + int64(quote)
		}
	}
}
