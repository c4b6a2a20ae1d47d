package ahp

import (
	"slices"
	"strings"
)

// Registration is the document that names the backends of a harness, in order,
// and what each subscribes to (§15). Order is significant.
type Registration struct {
	ProtocolVersion string    `json:"protocolVersion" ahp:"req"`
	Hooks           []Backend `json:"hooks" ahp:"req,min1"`
}

// Backend is one control backend. Authentication is for HTTP only.
type Backend struct {
	// ID is a reverse-DNS name, unique in the document.
	ID             string          `json:"id" ahp:"req,rdns"`
	Transport      TransportConfig `json:"transport" ahp:"req"`
	Authentication *Authentication `json:"authentication"`
	Subscriptions  []Subscription  `json:"subscriptions" ahp:"req,min1"`
	// ContentReceiver is forbidden: it is here so that the reader can refuse it.
	ContentReceiver Raw `json:"contentReceiver"`
}

// The types of transports and the lifecycles of a stdio backend.
const (
	TransportStdio      = "stdio"
	TransportHTTP       = "http"
	LifecyclePersistent = "persistent"
	LifecyclePerEvent   = "per_event"
)

// TransportConfig says how to reach a backend: by a command that is run without a
// shell, or at a URL.
type TransportConfig struct {
	Type      string   `json:"type" ahp:"req,enum=stdio|http"`
	Command   string   `json:"command" ahp:"min1"`
	Lifecycle string   `json:"lifecycle" ahp:"enum=persistent|per_event"`
	Args      []string `json:"args"`
	Cwd       string   `json:"cwd" ahp:"min1"`
	URL       string   `json:"url" ahp:"httpurl"`
}

// Authentication names credentials and never holds them.
type Authentication struct {
	// Type is "bearer" or "oauth".
	Type string `json:"type" ahp:"req,enum=bearer|oauth"`
	// TokenEnv or TokenRef, one of them, is for "bearer".
	TokenEnv string `json:"tokenEnv" ahp:"env"`
	TokenRef string `json:"tokenRef" ahp:"min1"`
	// The others are for "oauth".
	Resource        string   `json:"resource" ahp:"min1"`
	Issuer          string   `json:"issuer" ahp:"https"`
	ClientID        string   `json:"clientId" ahp:"min1"`
	Flow            string   `json:"flow" ahp:"enum=authorization_code_pkce|client_credentials"`
	ClientSecretRef string   `json:"clientSecretRef" ahp:"min1"`
	Scopes          []string `json:"scopes" ahp:"uniq"`
}

// FailurePolicy says what an operational failure means.
type FailurePolicy string

// The failure policies. There is no default.
const (
	// FailOpen continues unchanged, and leaves a trace.
	FailOpen FailurePolicy = "fail-open"
	// FailClosed denies.
	FailClosed FailurePolicy = "fail-closed"
)

// Subscription is one entry of a backend. TimeoutMs and FailurePolicy are set
// exactly with ModeIntercept.
type Subscription struct {
	// Events holds event types, families such as "tool.*", or "*".
	Events        []string      `json:"events" ahp:"req,min1,uniq"`
	Mode          Mode          `json:"mode" ahp:"req,enum=intercept|observe"`
	TimeoutMs     *int64        `json:"timeoutMs" ahp:"pos"`
	FailurePolicy FailurePolicy `json:"failurePolicy" ahp:"enum=fail-open|fail-closed"`
	// Content maps content categories, and "default", to what is sent of them.
	Content       map[string]Selection `json:"content" ahp:"req,enum=body|metadata|omit"`
	IncludeNative bool                 `json:"includeNative"`
	Upload        *Upload              `json:"upload"`
	Filters       *Filters             `json:"filters"`
	Scope         string               `json:"scope" ahp:"enum=managed|project|user"`
	Disableable   *bool                `json:"disableable"`
}

// Filters are hints that spare a backend events; they never drop a call of an
// unknown kind.
type Filters struct {
	ToolKinds []string `json:"toolKinds"`
	Paths     []string `json:"paths"`
}

// Upload says where to send attachment bytes.
type Upload struct {
	Endpoint  string          `json:"endpoint" ahp:"req,httpurl"`
	TimeoutMs int64           `json:"timeoutMs" ahp:"req,pos"`
	MaxBytes  int64           `json:"maxBytes" ahp:"req,nonneg"`
	Auth      *Authentication `json:"auth"`
}

func checkRegistration(r *Registration) *fault {
	seen := map[string]bool{}
	for i := range r.Hooks {
		id := r.Hooks[i].ID
		if seen[id] {
			return &fault{at: "hooks/" + itoa(i) + "/id", found: "the id " + quote(id) + " again", expected: "each backend once"}
		}
		seen[id] = true
	}
	return nil
}

func checkBackend(b *Backend) *fault {
	switch {
	case b.ContentReceiver != nil:
		return &fault{at: "contentReceiver", found: "contentReceiver", expected: "upload in a subscription"}
	case b.Authentication != nil && b.Transport.Type == TransportStdio:
		return &fault{at: "authentication", found: "authentication", expected: "none with the stdio transport"}
	}
	return nil
}

func checkTransport(t *TransportConfig) *fault {
	stdio := t.Type == TransportStdio
	switch {
	case stdio && t.Command == "":
		return &fault{found: "no command", expected: "one with type \"stdio\""}
	case stdio && t.Lifecycle == "":
		return &fault{found: "no lifecycle", expected: "\"persistent\" or \"per_event\" with type \"stdio\""}
	case stdio && t.URL != "":
		return &fault{at: "url", found: "a URL", expected: "none with type \"stdio\""}
	case !stdio && t.URL == "":
		return &fault{found: "no url", expected: "one with type \"http\""}
	case !stdio && (t.Command != "" || t.Lifecycle != "" || t.Args != nil || t.Cwd != ""):
		return &fault{found: "members of a stdio transport", expected: "none with type \"http\""}
	}
	return nil
}

func checkAuthentication(a *Authentication) *fault {
	oauth := a.Resource != "" || a.Issuer != "" || a.ClientID != "" || a.Flow != "" || a.ClientSecretRef != "" || a.Scopes != nil
	bearer := a.TokenEnv != "" || a.TokenRef != ""
	switch {
	case a.Type == "bearer" && (a.TokenEnv == "") == (a.TokenRef == ""):
		return &fault{found: "not exactly one of tokenEnv and tokenRef", expected: "one of them"}
	case a.Type == "bearer" && oauth:
		return &fault{found: "members of oauth", expected: "none with type \"bearer\""}
	case a.Type == "oauth" && bearer:
		return &fault{found: "members of bearer", expected: "none with type \"oauth\""}
	case a.Type == "oauth" && (a.Resource == "" || a.Issuer == "" || a.ClientID == "" || a.Flow == ""):
		return &fault{found: "not all of resource, issuer, clientId and flow", expected: "all of them with type \"oauth\""}
	}
	return nil
}

func checkSubscription(s *Subscription) *fault {
	if _, ok := s.Content["default"]; !ok {
		return &fault{at: "content", found: "no \"default\"", expected: "that member"}
	}
	switch intercept := s.Mode == ModeIntercept; {
	case intercept && s.TimeoutMs == nil:
		return &fault{found: "no timeoutMs", expected: "one with mode \"intercept\""}
	case intercept && s.FailurePolicy == "":
		return &fault{found: "no failurePolicy", expected: "\"fail-open\" or \"fail-closed\": there is no default"}
	case !intercept && (s.TimeoutMs != nil || s.FailurePolicy != ""):
		return &fault{found: "timeoutMs or failurePolicy", expected: "neither with mode \"observe\""}
	case s.Scope == "managed" && (s.Disableable == nil || *s.Disableable):
		return &fault{found: "a managed subscription that can be disabled", expected: "disableable: false"}
	}
	for i, sel := range s.Events {
		if f := checkSelector(sel, s.Mode); f != nil {
			f.at = "events/" + itoa(i)
			return f
		}
	}
	return nil
}

func checkSelector(sel string, mode Mode) *fault {
	if sel == "*" {
		return nil
	}
	if family, ok := strings.CutSuffix(sel, ".*"); ok {
		if family == "" || strings.Trim(family, "abcdefghijklmnopqrstuvwxyz") != "" {
			return &fault{found: quote(sel), expected: "a family of one lower-case segment, such as \"tool.*\""}
		}
		return nil
	}
	switch t := EventType(sel); {
	case !t.Known():
		return &fault{found: "the event type " + quote(sel), expected: "one of the 32 event types, a family or \"*\""}
	case mode == ModeIntercept && !t.Interceptable():
		return &fault{found: quote(sel), expected: "an event that can be intercepted"}
	}
	return nil
}

func checkUpload(u *Upload) *fault {
	scheme, _, _ := httpHost(u.Endpoint)
	if scheme != "https" && !IsLoopbackURL(u.Endpoint) {
		return &fault{at: "endpoint", found: "plain http", expected: "https, or http to this machine"}
	}
	return nil
}

// Selects reports whether one of the subscription's selectors covers t, and t is
// possible in its mode.
func (s *Subscription) Selects(t EventType) bool {
	if s.Mode == ModeIntercept && !t.Interceptable() {
		return false
	}
	return slices.ContainsFunc(s.Events, func(sel string) bool {
		if family, ok := strings.CutSuffix(sel, "*"); ok {
			return strings.HasPrefix(string(t), family)
		}
		return sel == string(t)
	})
}

// DecodeRegistration decodes and validates a registration document, and refuses
// one that holds literal secrets (§29, A5). An unsupported revision gives an
// Error of KindVersion.
func DecodeRegistration(data []byte) (*Registration, error) {
	out, err := DecodeRegistrationShape(data)
	if err != nil {
		return nil, err
	}
	if found := LintSecrets(data); len(found) > 0 {
		return nil, found[0]
	}
	return out, nil
}

// DecodeRegistrationShape is DecodeRegistration by the rules of the protocol alone,
// which let literal secrets pass: for tools that report them in their own way.
func DecodeRegistrationShape(data []byte) (*Registration, error) {
	out := new(Registration)
	err := open(data, func(r *reader) error {
		if err := r.any(out); err != nil {
			return err
		}
		if !supported(out.ProtocolVersion) {
			return r.version(out.ProtocolVersion)
		}
		return nil
	})
	if err != nil {
		if v := versionOf(data, "/protocolVersion"); v != nil && !supported(*v) {
			return nil, unsupportedVersion("/protocolVersion", *v, data)
		}
		return nil, err
	}
	return out, nil
}

// Encode returns r as JSON, validated.
func (r *Registration) Encode() ([]byte, error) { return encodeChecked(r) }
