package gemini

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/httpapi"
	"github.com/abhed/abhed/internal/strictjson"
)

// Config says which endpoint to speak to and how. New copies it.
type Config struct {
	// BaseURL is the API's root, to which /models/<model>:streamGenerateContent is
	// added; a query is kept, user information and a fragment are refused. Required.
	BaseURL string
	// Model is the model's name as the endpoint knows it; one with a slash, as
	// "tunedModels/x", is taken as the whole resource name. Required.
	Model string
	// APIKey is sent in the x-goog-api-key header and nowhere else; "" sends none.
	APIKey string
	// APIKeyEnv is the variable that the key came from, named in errors; "" is unknown.
	APIKeyEnv string
	// Name is the provider's configured name; "" means "gemini".
	Name string
	// Sampling holds the parameters to send, by their names in the configuration
	// (spec: Providers). What is absent is never sent. effort and thinking_budget
	// exclude each other.
	Sampling map[string]any
	// Headers are sent with every request. Their values are taken for secrets.
	Headers map[string]string
	// StallTimeout is the longest wait for a byte, the first included; zero means
	// httpapi.DefaultStallTimeout. Traffic without content counts for ten times as long.
	StallTimeout time.Duration
	// MaxReply bounds a whole reply, unpacked, in bytes; zero means
	// httpapi.DefaultMaxReply.
	MaxReply int
	// CAFile is a PEM file of authorities trusted besides the system's; "" is none. It
	// can't be combined with HTTPClient.
	CAFile string
	// HTTPClient, if set, is used instead of a client of the Client's own, without its
	// redirect policy: redirects are never followed.
	HTTPClient *http.Client
}

// paramNames maps each sampling name of the configuration that the API has to the
// member of generationConfig, or of the thinkingConfig in it.
func paramNames() map[string]string {
	return map[string]string{
		"temperature": "temperature", "top_p": "topP", "top_k": "topK", "seed": "seed",
		"frequency_penalty": "frequencyPenalty", "presence_penalty": "presencePenalty",
		"max_tokens": "maxOutputTokens", "stop": "stopSequences",
		"effort": "thinkingLevel", "thinking_budget": "thinkingBudget",
	}
}

// generation is the generationConfig of every request.
type generation struct {
	members []byte // each with a comma after it, without the output limit
	limit   int64  // the configured output limit, 0 for none
}

func (cfg *Config) generation() (generation, error) {
	var g generation
	params, err := httpapi.Params(cfg.Sampling, paramNames(), nil, "responseMimeType", "responseJsonSchema", "thinkingConfig")
	if err != nil {
		return g, err
	}
	var thinking, thinkingBy string
	for _, p := range params {
		switch p.Name {
		case "max_tokens":
			if err := strictjson.Unmarshal(p.Value, &g.limit, strictjson.Options{}); err != nil || g.limit <= 0 {
				return g, fmt.Errorf("sampling parameter max_tokens is %s; expected a whole number above 0", p.Value)
			}
			continue
		case "seed":
			var seed int32
			if err := strictjson.Unmarshal(p.Value, &seed, strictjson.Options{}); err != nil {
				return g, fmt.Errorf("sampling parameter seed is %s; the API takes a whole number of 32 bits", p.Value)
			}
		case "effort", "thinking_budget":
			if thinking != "" {
				return g, fmt.Errorf("sampling parameters %q and %q exclude each other for this API; remove one", thinkingBy, p.Name)
			}
			thinking, thinkingBy = fmt.Sprintf(`"thinkingConfig":{"%s":%s`, p.Member, p.Value), p.Name
			// A model that doesn't think refuses to say its thoughts.
			if string(p.Value) != "0" {
				thinking += `,"includeThoughts":true`
			}
			thinking += "},"
			continue
		}
		g.members = append(append(httpapi.AppendQuote(g.members, p.Member), ':'), p.Value...)
		g.members = append(g.members, ',')
	}
	g.members = append(g.members, thinking...)
	return g, nil
}

// member returns the generationConfig member of a request with a comma, or nothing
// if there is nothing to say.
func (g *generation) member(req *model.Request) ([]byte, error) {
	out := append([]byte(`"generationConfig":{`), g.members...)
	empty := len(g.members) == 0
	if limit := httpapi.Smaller(g.limit, req.MaxOutput); limit > 0 {
		out, empty = append(strconv.AppendInt(append(out, `"maxOutputTokens":`...), limit, 10), ','), false
	}
	if req.Output != nil && len(req.Tools) == 0 {
		if err := strictjson.Check(req.Output, strictjson.Options{}); err != nil {
			return nil, fmt.Errorf("the schema of the answer is not valid JSON: %w", err)
		}
		out = append(out, `"responseMimeType":"application/json","responseJsonSchema":`...)
		out, empty = append(append(out, req.Output...), ','), false
	}
	if empty {
		return nil, nil
	}
	out[len(out)-1] = '}' // the last comma
	return append(out, ','), nil
}
