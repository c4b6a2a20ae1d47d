package gemini

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model/httpapi"
	"github.com/abhed/abhed/internal/strictjson"
)

// chunk is one frame of a stream, or a whole reply. A null and a missing member are
// the same everywhere.
type chunk struct {
	Candidates     *[]candidate   `json:"candidates"`
	PromptFeedback *feedback      `json:"promptFeedback"`
	Usage          jsontext.Value `json:"usageMetadata"`
	Model          jsontext.Value `json:"modelVersion"`
	Error          jsontext.Value `json:"error"`
}

type feedback struct {
	BlockReason jsontext.Value `json:"blockReason"`
	Message     jsontext.Value `json:"blockReasonMessage"`
}

type candidate struct {
	Index         jsontext.Value `json:"index"`
	Content       *content       `json:"content"`
	FinishReason  jsontext.Value `json:"finishReason"`
	FinishMessage jsontext.Value `json:"finishMessage"`
}

type content struct {
	Parts *[]part `json:"parts"`
}

type part struct {
	Text      jsontext.Value `json:"text"`
	Thought   jsontext.Value `json:"thought"`
	Signature jsontext.Value `json:"thoughtSignature"`
	Call      *functionCall  `json:"functionCall"`
}

type functionCall struct {
	ID           jsontext.Value `json:"id"`
	Name         jsontext.Value `json:"name"`
	Args         jsontext.Value `json:"args"`
	PartialArgs  jsontext.Value `json:"partialArgs"`
	WillContinue jsontext.Value `json:"willContinue"`
}

// arguments returns the arguments' text. Calls without arguments come without the
// member; gateways send text instead of an object.
func (f *functionCall) arguments() (string, error) {
	if !httpapi.Absent(f.PartialArgs) || httpapi.Scalar(f.WillContinue) == "true" {
		return "", fmt.Errorf("a function call came in pieces, which was not asked for")
	}
	switch {
	case httpapi.Absent(f.Args):
		return "{}", nil
	case f.Args.Kind() == '"':
		return httpapi.Scalar(f.Args), nil
	default:
		return string(f.Args), nil
	}
}

type wireUsage struct {
	Prompt     jsontext.Value `json:"promptTokenCount"`
	Cached     jsontext.Value `json:"cachedContentTokenCount"`
	ToolPrompt jsontext.Value `json:"toolUsePromptTokenCount"`
	Candidates jsontext.Value `json:"candidatesTokenCount"`
	Thoughts   jsontext.Value `json:"thoughtsTokenCount"`
	Total      jsontext.Value `json:"totalTokenCount"`
}

// usage translates a usageMetadata member. promptTokenCount includes what came from
// the cache and candidatesTokenCount leaves out the thoughts, while event.Usage
// counts each token once and thoughts as output. It returns nil and a note if the
// member can't be understood.
func usage(v jsontext.Value) (*event.Usage, string) {
	var w wireUsage
	if err := strictjson.Unmarshal(v, &w, strictjson.Options{}); err != nil {
		return nil, "the usageMetadata member could not be understood (" + err.Error() + ")"
	}
	u := &event.Usage{Input: sum(w.Prompt, w.ToolPrompt), Output: sum(w.Candidates, w.Thoughts), CacheRead: httpapi.Count(w.Cached), Reasoning: httpapi.Count(w.Thoughts)}
	if total := httpapi.Count(w.Total); u.Output == nil && u.Input != nil && total != nil && *total >= *u.Input {
		rest := *total - *u.Input // a count of nothing is left out
		u.Output = &rest
	}
	if *u == (event.Usage{}) {
		return nil, ""
	}
	return u, httpapi.WithoutCached(u)
}

// sum adds the counts that are there, nil if none is.
func sum(vs ...jsontext.Value) *int64 {
	var out *int64
	for _, v := range vs {
		if n := httpapi.Count(v); n != nil {
			if out == nil {
				out = new(int64)
			}
			*out += *n
		}
	}
	return out
}
