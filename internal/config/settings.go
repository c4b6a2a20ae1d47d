package config

import (
	"slices"
	"strings"
	"time"
)

// Settings are the merged settings of all sources. Build them with Load.
type Settings struct {
	// Model is provider/model, or empty if none is configured.
	Model string `json:"model"`
	// Sampling holds what was configured; Resolve has checked it against Model's
	// endpoint.
	Sampling  Sampling   `json:"sampling"`
	Providers []Provider `json:"custom_providers"`

	Permissions Permissions          `json:"permissions"`
	Extensions  []Extension          `json:"extensions"`
	AHP         AHP                  `json:"ahp"`
	Sandbox     Sandbox              `json:"sandbox"`
	Limits      Limits               `json:"limits"`
	Secrets     Secrets              `json:"secrets"`
	Record      Record               `json:"record"`
	Models      map[string]ModelInfo `json:"models"`
	Context     Context              `json:"context"`
	Tools       Tools                `json:"tools"`
	Skills      Skills               `json:"skills"`
	// MCP holds the MCP servers by name, disabled ones too.
	MCP map[string]MCPServer `json:"mcp"`
	// MCPBudgetTokens bounds what the descriptions of MCP tools may take in a
	// prompt; tools beyond it are loaded on demand.
	MCPBudgetTokens int64     `json:"mcp_budget_tokens"`
	HTTP            HTTP      `json:"http"`
	Telemetry       Telemetry `json:"telemetry"`

	// QuickStart is the endpoint that ABHED_BASE_URL names.
	QuickStart QuickStart `json:"-"`
	// Ignored lists what an untrusted project file may not set.
	Ignored []Ignored `json:"-"`
	// Warnings lists what is odd, such as an unknown ABHED_* variable.
	Warnings []Warning `json:"-"`

	merged *node
}

// Rule is one permission rule as written, and where it stands.
type Rule struct {
	Text   string
	Origin Origin
}

// String returns the rule's text.
func (r Rule) String() string { return r.Text }

// MarshalText returns the rule's text.
func (r Rule) MarshalText() ([]byte, error) { return []byte(r.Text), nil }

// UnmarshalText sets the rule's text.
func (r *Rule) UnmarshalText(b []byte) error {
	r.Text = string(b)
	return nil
}

// Sampling holds sampling parameters. A nil pointer or an empty value is absent
// and never sent: absent is not zero.
type Sampling struct {
	Temperature       *float64 `json:"temperature"`
	TopP              *float64 `json:"top_p"`
	TopK              *int64   `json:"top_k"`
	MinP              *float64 `json:"min_p"`
	Seed              *int64   `json:"seed"`
	FrequencyPenalty  *float64 `json:"frequency_penalty"`
	PresencePenalty   *float64 `json:"presence_penalty"`
	RepetitionPenalty *float64 `json:"repetition_penalty"`
	MaxTokens         *int64   `json:"max_tokens"`
	Stop              []string `json:"stop"`
	Effort            string   `json:"effort"`
	ThinkingBudget    *int64   `json:"thinking_budget"`
}

// Provider is a model endpoint beside the built-in ones.
type Provider struct {
	Name string `json:"name"`
	API  string `json:"api"`
	// BaseURL is the API's base URL; for APIScript the script's file.
	BaseURL   string `json:"base_url"`
	APIKeyEnv string `json:"api_key_env"`
	// HeadersEnv maps a header's name to the variable that holds its value.
	HeadersEnv  map[string]string    `json:"headers_env"`
	Sampling    []string             `json:"sampling"`
	Models      map[string]ModelInfo `json:"models"`
	Description string               `json:"description"`
}

// ModelInfo is what is known of a model. Zero means unknown.
type ModelInfo struct {
	// ContextWindow and OutputLimit are in tokens.
	ContextWindow int64 `json:"context_window"`
	OutputLimit   int64 `json:"output_limit"`
	// Images says whether the model sees images; nil is unknown.
	Images *bool  `json:"images"`
	Price  *Price `json:"price"`
}

// Price is in US dollars for a million tokens. A nil rate is unknown, which is
// not free.
type Price struct {
	Input      *float64 `json:"input"`
	Output     *float64 `json:"output"`
	CacheRead  *float64 `json:"cache_read"`
	CacheWrite *float64 `json:"cache_write"`
}

// Permissions say what may run without a question.
type Permissions struct {
	// Mode is the mode in force at the start, one of Modes.
	Mode string `json:"mode"`
	// MaxMode is the least strict mode that may come into force later: the
	// strictest of every max_mode and of the managed and project modes.
	MaxMode string `json:"max_mode"`
	// Allow, Ask and Deny hold the rules of all sources, the highest source's
	// first.
	Allow       []Rule   `json:"allow"`
	Ask         []Rule   `json:"ask"`
	Deny        []Rule   `json:"deny"`
	Runners     []string `json:"runners"`
	EnvHarmless []string `json:"env_harmless"`
}

// AtMost reports whether mode is one of Modes and no less strict than MaxMode.
func (p *Permissions) AtMost(mode string) bool {
	i := slices.Index(Modes(), mode)
	return i >= 0 && i <= slices.Index(Modes(), p.MaxMode)
}

// Extension is one extension process (extensions.md, Configuration).
type Extension struct {
	Name string `json:"name"`
	// Command is a program's path, or a bare name for PATH.
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	Cwd     string            `json:"cwd"`
	// Events are the events it is asked about; none means all.
	Events []string `json:"events"`
	// Match narrows tool_call and permission_request; none means every call.
	Match           []Rule `json:"match"`
	TimeoutMS       int64  `json:"timeout_ms"`
	InvokeTimeoutMS int64  `json:"invoke_timeout_ms"`
	Sandbox         bool   `json:"sandbox"`
	// OnFailure is skip, ask or block.
	OnFailure string `json:"on_failure"`
}

// Timeout returns how long the extension may take for any event but invoke_tool.
func (e *Extension) Timeout() time.Duration { return time.Duration(e.TimeoutMS) * time.Millisecond }

// InvokeTimeout returns how long a tool of the extension may take.
func (e *Extension) InvokeTimeout() time.Duration {
	return time.Duration(e.InvokeTimeoutMS) * time.Millisecond
}

// Subscribes reports whether the extension is asked about event.
func (e *Extension) Subscribes(event string) bool {
	return len(e.Events) == 0 || slices.Contains(e.Events, event)
}

// AHP holds the settings of the Agent Hooks Protocol.
type AHP struct {
	// Registration is the file that registers backends; empty means the usual
	// places.
	Registration string `json:"registration"`
}

// Sandbox says how tools are confined.
type Sandbox struct {
	// MinTier is one of Tiers.
	MinTier   string   `json:"min_tier"`
	Network   bool     `json:"network"`
	HomePaths []string `json:"home_paths"`
}

// Limits bound one run; 0 is no limit.
type Limits struct {
	MaxTurns   int64   `json:"max_turns"`
	MaxTokens  int64   `json:"max_tokens"`
	MaxCostUSD float64 `json:"max_cost_usd"`
	MaxSeconds int64   `json:"max_seconds"`
}

// Secrets name what must never enter the record, a log, an error or an event.
type Secrets struct {
	// Env are names of variables, Files are paths.
	Env   []string `json:"env"`
	Files []string `json:"files"`
}

// Record holds the settings of the session record.
type Record struct {
	// Anchor is a program or an http(s) URL that receives each signed head; empty
	// is none.
	Anchor string `json:"anchor"`
}

// Context says what of a long conversation the model is sent.
type Context struct {
	// Compaction is one of Compactions.
	Compaction string `json:"compaction"`
	// Threshold is the share of the context window, 0.1 to 0.99, from which on a
	// conversation is compacted.
	Threshold float64 `json:"threshold"`
	// KeepResults is how many of the newest tool results are always sent whole.
	KeepResults int64 `json:"keep_results"`
	// StubBytes is the size above which an older result is sent as a stub; 0 means
	// never.
	StubBytes int64 `json:"stub_bytes"`
}

// Tools says which tools the model is offered.
type Tools struct {
	// Disabled are tools that are neither offered nor run: those of all sources,
	// of an untrusted project too.
	Disabled []string `json:"disabled"`
}

// Skills says where skills are.
type Skills struct {
	// Paths are folders, the highest source's first.
	Paths []string `json:"paths"`
}

// Telemetry says where spans and measurements go; the zero value sends none.
type Telemetry struct {
	// OTLPEndpoint is the base URL of a collector.
	OTLPEndpoint string `json:"otlp_endpoint"`
	// HeadersEnv maps a header's name to the variable that holds its value.
	HeadersEnv map[string]string `json:"headers_env"`
}

// IsURL reports whether the anchor is a URL instead of a program.
func (r Record) IsURL() bool { return strings.Contains(r.Anchor, "://") }
