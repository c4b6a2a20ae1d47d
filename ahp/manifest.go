package ahp

import "slices"

// Mode is how a subscription takes part.
type Mode string

// The modes.
const (
	ModeIntercept Mode = "intercept"
	ModeObserve   Mode = "observe"
)

// Manifest is what a harness promises to send and to enforce (§9).
type Manifest struct {
	Events            []ManifestEvent `json:"events" ahp:"req"`
	Gaps              []Gap           `json:"gaps" ahp:"req"`
	Transports        []string        `json:"transports" ahp:"req,uniq,enum=http|stdio|in_process"`
	Authentication    []string        `json:"authentication" ahp:"req,uniq,enum=bearer|oauth"`
	ToolPaths         []string        `json:"toolPaths" ahp:"req"`
	ContentCategories []string        `json:"contentCategories" ahp:"req"`
	Limits            Limits          `json:"limits" ahp:"req"`
	ManagedPolicy     ManagedPolicy   `json:"managedPolicy" ahp:"req"`
	// CorrelationIdentityFields are paths of members, such as "call.id".
	CorrelationIdentityFields []string `json:"correlationIdentityFields" ahp:"req"`
	// Identity is forbidden; it is here so that the reader can refuse it.
	Identity Raw `json:"identity"`
	Unknown  `json:"-"`
}

// ManifestEvent is one advertised event type. Capabilities is set where
// interception is offered.
type ManifestEvent struct {
	Event        EventType     `json:"event" ahp:"req"`
	Modes        []Mode        `json:"modes" ahp:"req,min1,uniq,enum=observe|intercept"`
	Capabilities *Capabilities `json:"capabilities"`
	Unknown      `json:"-"`
}

// Limits are bounds of the harness. A nil one is unknown, not unlimited.
type Limits struct {
	MaxUploadBytes   *int64 `json:"maxUploadBytes" ahp:"nonneg"`
	MaxContinuations *int64 `json:"maxContinuations" ahp:"nonneg"`
	MinTimeoutMs     *int64 `json:"minTimeoutMs" ahp:"nonneg"`
	MaxTimeoutMs     *int64 `json:"maxTimeoutMs" ahp:"nonneg"`
	Unknown          `json:"-"`
}

// ManagedPolicy says whose policy the harness can hold.
type ManagedPolicy struct {
	Scopes      []string `json:"scopes" ahp:"req,uniq,enum=user|project|managed"`
	Disableable bool     `json:"disableable" ahp:"req"`
	Unknown     `json:"-"`
}

func checkManagedPolicy(m *ManagedPolicy) *fault {
	if m.Disableable && slices.Contains(m.Scopes, "managed") {
		return &fault{at: "disableable", found: "true", expected: "false where the scopes list \"managed\""}
	}
	return nil
}

func checkManifest(m *Manifest) *fault {
	if m.Identity != nil {
		return &fault{at: "identity", found: "an identity", expected: "none in a manifest"}
	}
	return nil
}

func checkManifestEvent(e *ManifestEvent) *fault {
	intercept := slices.Contains(e.Modes, ModeIntercept)
	switch {
	case !e.Event.Known():
		return &fault{at: "event", found: quote(string(e.Event)), expected: "one of the 32 event types"}
	case intercept && !e.Event.Interceptable():
		return &fault{at: "modes", found: "intercept", expected: "observe alone for " + string(e.Event)}
	case intercept && e.Capabilities == nil:
		return &fault{found: "no capabilities", expected: "them where the event can be intercepted"}
	case !intercept && e.Capabilities != nil && len(e.Capabilities.Effects) > 0:
		return &fault{at: "capabilities/effects", found: "effects", expected: "none where the event is only observed"}
	}
	if e.Capabilities != nil {
		if f := e.Capabilities.bounded(e.Event); f != nil {
			f.at = "capabilities/" + f.at
			return f
		}
	}
	return nil
}

// Advertises returns the row of event type t that offers mode m, or nil.
func (m *Manifest) Advertises(t EventType, mode Mode) *ManifestEvent {
	for i := range m.Events {
		if m.Events[i].Event == t && slices.Contains(m.Events[i].Modes, mode) {
			return &m.Events[i]
		}
	}
	return nil
}

// DecodeManifest decodes and validates a manifest.
func DecodeManifest(data []byte) (*Manifest, error) { return decode[Manifest](data) }

// Encode returns m as JSON, validated.
func (m *Manifest) Encode() ([]byte, error) { return encodeChecked(m) }
