package script

import (
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/strictjson"
)

type fileCall struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Args     *jsontext.Value `json:"args"`
	ArgsText *string         `json:"args_text"`
}

type fileStep struct {
	Expect    string          `json:"expect"`
	Reasoning string          `json:"reasoning"`
	Text      string          `json:"text"`
	Calls     []fileCall      `json:"calls"`
	Finish    model.Finish    `json:"finish"`
	Usage     *model.Usage    `json:"usage"`
	Fail      model.ErrorKind `json:"fail"`
	Hang      bool            `json:"hang"`
}

// Parse reads steps from JSON: an object with the list "steps", whose elements
// have the members of Step in lower case. A call's arguments are the object
// "args", or "args_text" for text that isn't an object. Unknown members are
// errors.
func Parse(data []byte) ([]Step, error) {
	steps, _, err := parse(data)
	return steps, err
}

// parse reads the steps of a script, and those of its sub-agents.
func parse(data []byte) (steps []Step, agents map[string][]Step, err error) {
	var file struct {
		Steps  *[]fileStep           `json:"steps"`
		Agents map[string][]fileStep `json:"agents"`
	}
	if err := strictjson.Unmarshal(data, &file, strictjson.Options{RejectUnknown: true}); err != nil {
		return nil, nil, fmt.Errorf("script: %w", err)
	}
	if file.Steps == nil {
		return nil, nil, fmt.Errorf(`script: no member "steps"`)
	}
	if steps, err = stepsOf("/steps", *file.Steps); err != nil {
		return nil, nil, err
	}
	agents = map[string][]Step{}
	for _, title := range slices.Sorted(maps.Keys(file.Agents)) {
		if agents[title], err = stepsOf("/agents/"+title, file.Agents[title]); err != nil {
			return nil, nil, err
		}
	}
	return steps, agents, nil
}

func stepsOf(at string, list []fileStep) ([]Step, error) {
	steps := []Step{}
	for i, f := range list {
		s, err := f.step()
		if err != nil {
			return nil, fmt.Errorf("script: at %s/%d%w", at, i, err)
		}
		steps = append(steps, s)
	}
	return steps, nil
}

func (f *fileStep) step() (Step, error) {
	s := Step{Expect: f.Expect, Reasoning: f.Reasoning, Text: f.Text, Finish: f.Finish, Usage: f.Usage, Fail: f.Fail, Hang: f.Hang}
	finishes := []model.Finish{"", model.FinishStop, model.FinishToolCalls, model.FinishLength, model.FinishFiltered}
	if !slices.Contains(finishes, f.Finish) {
		return s, fmt.Errorf("/finish: %q is unknown; known are %q", f.Finish, finishes[1:])
	}
	kinds := []model.ErrorKind{"", model.ErrConnect, model.ErrTLS, model.ErrAuth, model.ErrRequest, model.ErrRateLimit,
		model.ErrServer, model.ErrCut, model.ErrMalformed, model.ErrStalled, model.ErrOverflow, model.ErrReplay}
	if !slices.Contains(kinds, f.Fail) {
		return s, fmt.Errorf("/fail: %q is unknown; known are %q", f.Fail, kinds[1:])
	}
	for i, c := range f.Calls {
		call := Call{ID: c.ID, Name: c.Name}
		switch {
		case c.Name == "":
			return s, fmt.Errorf("/calls/%d: no name", i)
		case c.Args != nil && c.ArgsText != nil:
			return s, fmt.Errorf("/calls/%d: both args and args_text", i)
		case c.ArgsText != nil:
			call.Args = *c.ArgsText
		case c.Args != nil && c.Args.Kind() != '{':
			return s, fmt.Errorf("/calls/%d/args: expected an object; use args_text for other text", i)
		case c.Args != nil:
			call.Args = string(*c.Args)
		}
		s.Calls = append(s.Calls, call)
	}
	return s, nil
}
