package ahp

// Role is who a canonical message is from.
type Role string

// The roles of the canonical content model (§7).
const (
	RoleSystem    Role = "system"
	RoleDeveloper Role = "developer"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// PartKind is the kind of a part.
type PartKind string

// The kinds of parts. There is no kind for JSON.
const (
	KindText       PartKind = "text"
	KindAttachment PartKind = "attachment"
)

// Selection says how much of a part is sent.
type Selection string

// The selections.
const (
	// SelectBody sends the text, or a reference to uploaded bytes.
	SelectBody Selection = "body"
	// SelectMetadata sends id, kind and media type without the content.
	SelectMetadata Selection = "metadata"
	// SelectOmit sends nothing of the content; the part may be left out.
	SelectOmit Selection = "omit"
)

// MediaText is the media type of every text part.
const MediaText = "text/plain"

// Message is one canonical message. The order of messages and of parts matters.
type Message struct {
	ID          string `json:"id" ahp:"req,min1"`
	Role        Role   `json:"role" ahp:"req,enum=system|developer|user|assistant|tool"`
	Parts       []Part `json:"parts" ahp:"req"`
	Synthesized bool   `json:"synthesized"`
}

// Part is one piece of content in exactly one of eight closed shapes (§7): text
// with its body, with a gap, as metadata or omitted, and the same for an
// attachment, whose body is a reference.
type Part struct {
	ID        string    `json:"id" ahp:"req,min1"`
	Kind      PartKind  `json:"kind" ahp:"req,enum=text|attachment"`
	MediaType string    `json:"mediaType" ahp:"req,min1"`
	Selection Selection `json:"selection" ahp:"req,enum=body|metadata|omit"`
	// Category is what content selection goes by first, such as "reasoning".
	Category string `json:"category"`
	// Text is set, perhaps to "", in a text part with its body and in no other.
	Text *string `json:"text"`
	// Body refers to the bytes of an attachment.
	Body *BodyRef `json:"body"`
	// Gap says why a requested body is missing.
	Gap *PartGap `json:"gap"`
	// Size is the content's length in bytes, where it isn't sent along.
	Size *int64 `json:"size" ahp:"nonneg"`
	// SHA256 is 64 lower-case hex digits, where the content isn't sent along.
	SHA256      string `json:"sha256" ahp:"sha256"`
	Synthesized bool   `json:"synthesized"`
}

// BodyRef refers to uploaded bytes.
type BodyRef struct {
	Ref string `json:"ref" ahp:"req,min1"`
}

// PartGap says why a body that was asked for can't be had.
type PartGap struct {
	Reason string `json:"reason" ahp:"req,min1"`
	Path   string `json:"path" ahp:"min1"`
}

// Gap names something that a party can't report, and why.
type Gap struct {
	Path    string `json:"path" ahp:"req,min1"`
	Reason  string `json:"reason" ahp:"req,min1"`
	Unknown `json:"-"`
}

// Ref refers to something by its id.
type Ref struct {
	ID string `json:"id" ahp:"req,min1"`
}

// TextPart returns a text part with its body.
func TextPart(id, text string) Part {
	return Part{ID: id, Kind: KindText, MediaType: MediaText, Selection: SelectBody, Text: &text}
}

// TextMessage returns a message with one text part, whose id is id + ":text".
func TextMessage(id string, role Role, text string) Message {
	return Message{ID: id, Role: role, Parts: []Part{TextPart(id+":text", text)}}
}

// Items is the common content of an event: messages or bare parts, by event
// type. The zero Items is an absent member; a non-nil empty list is present.
type Items struct {
	Messages []Message
	Parts    []Part
}

// MessageItems returns Items that hold messages, present even when there are none.
func MessageItems(m ...Message) Items { return Items{Messages: append([]Message{}, m...)} }

// PartItems returns Items that hold bare parts, present even when there are none.
func PartItems(p ...Part) Items { return Items{Parts: append([]Part{}, p...)} }

// IsZero reports whether the member is absent.
func (i Items) IsZero() bool { return i.Messages == nil && i.Parts == nil }

// checkPart holds the eight shapes of §7.
func checkPart(p *Part) *fault {
	body := p.Selection == SelectBody
	if p.Kind == KindText {
		switch {
		case p.MediaType != MediaText:
			return &fault{at: "mediaType", found: quote(p.MediaType), expected: `"text/plain" for a text part`}
		case p.Body != nil:
			return &fault{at: "body", found: "a body reference", expected: "text in a text part, which is never uploaded"}
		}
	} else {
		switch {
		case !isAttachmentType(p.MediaType):
			return &fault{at: "mediaType", found: quote(p.MediaType), expected: "a media type that is neither text nor JSON"}
		case p.Text != nil:
			return &fault{at: "text", found: "text", expected: "no text in an attachment"}
		}
	}
	content := p.Text != nil || p.Body != nil
	switch {
	case !body && content:
		return &fault{at: contentMember(p), found: "content", expected: "no content where selection is " + quote(string(p.Selection))}
	case !body && p.Gap != nil:
		return &fault{at: "gap", found: "a gap", expected: "a gap only where selection is \"body\""}
	case body && content && p.Gap != nil:
		return &fault{at: "gap", found: "content and a gap", expected: "one of them"}
	case body && !content && p.Gap == nil:
		return &fault{found: "neither content nor a gap", expected: "one of them where selection is \"body\""}
	case content && p.Size != nil:
		return &fault{at: "size", found: "a size", expected: "none where the content is sent along"}
	case content && p.SHA256 != "":
		return &fault{at: "sha256", found: "a hash", expected: "none where the content is sent along"}
	}
	return nil
}

func contentMember(p *Part) string {
	if p.Text != nil {
		return "text"
	}
	return "body"
}
