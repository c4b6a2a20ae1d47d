package probe

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/abhed/abhed/internal/model"
)

const (
	countPrompt = "Count from one to forty in English words, separated by commas. Write nothing else."
	// slowStart and lumpFactor say when pieces came in one lump: the first after a long
	// wait, and all others in a small part of that.
	slowStart  = time.Second
	lumpFactor = 20
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// plain makes a plain request, and reports whether others make sense.
func (r *runner) plain(ctx context.Context) bool {
	req := &model.Request{System: "Do exactly what is asked.", Messages: []*model.Message{user(countPrompt)}}
	a := r.call(ctx, req)
	unbounded := ""
	if blamesBound(a.err) {
		// An agent's requests have no bound of their own, so they may still go through.
		r.o.MaxOutput, unbounded = 0, "; the bound on the output was refused, and left out from then on"
		a = r.call(ctx, req)
	}
	if a.err != nil {
		r.notAnswered(a)
		if r.blocked == "" {
			r.blocked = "a plain request fails"
		}
		return false
	}
	r.set(Credential, OK, "", "the endpoint let the request in")
	name := "the endpoint doesn't say which model answers"
	if a.resp.Model != "" {
		name = "the endpoint says that " + r.quoted(a.resp.Model) + " answers"
	}
	r.set(Model, OK, "", "%s", name)
	r.sayUsage(a.resp.Usage)
	text := a.resp.Message.Text()
	switch {
	case r.unfinished(Reply, a.resp):
	case text == "":
		r.set(Reply, No, "check that the model and the server's chat template fit", "the reply holds no text (finish reason %s)%s", a.resp.Finish, noted(a.resp))
	default:
		r.set(Reply, OK, "", "%d characters, finish reason %s%s%s", len([]rune(text)), a.resp.Finish, noted(a.resp), unbounded)
	}
	r.sayStream(a)
	if r.probes[Reply].Outcome == No {
		r.blocked = "a plain request got no text"
		return false
	}
	return true
}

func (r *runner) sayStream(a *answer) {
	do := "check whether a proxy before the endpoint holds answers back"
	wait := a.first.Round(time.Millisecond)
	switch {
	case a.texts == 0:
		r.set(Stream, Unclear, "", "no piece of text came")
	case a.texts == 1:
		r.set(Stream, No, do, "all the text came in one piece, after %v", a.last.Round(time.Millisecond))
	case a.first >= slowStart && a.last-a.first <= a.first/lumpFactor:
		r.set(Stream, No, do, "%d pieces came, but in one lump: the first after %v, the last %v later", a.pieces, wait, (a.last - a.first).Round(time.Millisecond))
	default:
		r.set(Stream, OK, "", "%d pieces, the first after %v, the last after %v", a.pieces, wait, a.last.Round(time.Millisecond))
	}
}

func (r *runner) sayUsage(u *model.Usage) {
	do := "limits on tokens and cost can't be kept, and the use of the context is guessed"
	switch {
	case u == nil || u.Input == nil && u.Output == nil:
		r.set(UsageSaid, No, do, "the reply has no count of tokens")
	case u.Input == nil:
		r.set(UsageSaid, No, do, "the reply has a count of the output alone (%d tokens)", *u.Output)
	case u.Output == nil:
		r.set(UsageSaid, No, do, "the reply has a count of the input alone (%d tokens)", *u.Input)
	default:
		r.set(UsageSaid, OK, "", "%d tokens in, %d out", *u.Input+orZero(u.CacheRead)+orZero(u.CacheWrite), *u.Output)
	}
}

// notAnswered says why the first request failed, and where it got to.
func (r *runner) notAnswered(a *answer) {
	var me *model.Error
	errors.As(a.err, &me)
	unsure := "the request failed before that could be told"
	r.set(Credential, Unclear, "", "%s", unsure)
	r.set(Model, Unclear, "", "%s", unsure)
	r.failed(Reply, a, "read what the endpoint says; a configured sampling parameter may be what it refuses")
	if a.late {
		r.set(Reply, No, "check that the server is well; a slow model needs more time", "%s", r.probes[Reply].Saw)
		return
	}
	if me == nil {
		return
	}
	if me.Kind != model.ErrRateLimit && me.Kind != model.ErrServer {
		r.probes[Reply].Outcome = No
	}
	switch {
	case me.Kind == model.ErrAuth && me.Status == 403:
		r.set(Credential, No, "check that the key may use this model, and the account's region and rights", "the key is known, or not needed, but may not do this: %s", said(me))
		r.skip(Reply, r.blocked)
	case me.Kind == model.ErrAuth:
		r.set(Credential, No, "check the key, and the variable that it comes from", "the key was not accepted: %s", said(me))
		r.skip(Reply, r.blocked)
	case me.Partial != "":
		r.set(Credential, OK, "", "the endpoint let the request in")
		r.set(Model, OK, "", "a reply began")
	case me.Kind == model.ErrRateLimit:
		r.set(Credential, Unclear, "", "the rate limit came first, which most endpoints apply to keys that they know")
	case me.Status == 404 || me.Status == 405 || me.Kind == model.ErrRequest && blamesModel(me):
		r.sayNotFound(me)
	case me.Kind == model.ErrRequest && me.Status >= 400:
		r.set(Credential, OK, "", "the endpoint looked at the request")
	case me.Kind == model.ErrTLS:
		r.set(TLS, No, "trust the endpoint's authority with ca_file if it is yours", "%s", said(me))
		r.skip(Reply, "there is no TLS connection")
	case me.Kind == model.ErrConnect || me.Kind == model.ErrStalled:
		r.probes[Reply].Do = "check base_url, the server and the network"
	case me.Kind == model.ErrMalformed:
		r.probes[Reply].Do = "check base_url: something else than the API may be there"
	}
}

// sayNotFound tells a wrong model from a wrong path.
func (r *runner) sayNotFound(me *model.Error) {
	if blamesModel(me) {
		r.set(Credential, Unclear, "", "the model was refused first")
		r.set(Model, No, "check the model's name; the endpoint's own list has it as it must be written", "the path is right and the model is not known: %s", said(me))
	} else {
		r.set(Credential, Unclear, "", "the path was refused first")
		r.set(Model, No, "check base_url: the API is not at this path", "the path is not known: %s", said(me))
	}
	r.skip(Reply, "the path or the model is not known")
	r.blocked = "the path or the model is not known"
}

// blamesModel reports whether a refusal is of the model and not of something else.
func blamesModel(me *model.Error) bool {
	said := strings.ToLower(me.Detail)
	// The client's own advice, which names both.
	if i := strings.LastIndex(said, ". check base_url"); i >= 0 {
		said = said[:i]
	}
	said = strings.TrimPrefix(said, "the endpoint does not know this: ")
	path := strings.ToLower(shown(me.Endpoint))
	if i := strings.Index(path, "://"); i >= 0 {
		if j := strings.IndexByte(path[i+3:], '/'); j >= 0 {
			path = path[i+3+j:] // some quote the path, in which the word may stand
			said = strings.ReplaceAll(said, path, "")
		}
	}
	if !strings.Contains(said, "model") {
		return false
	}
	if me.Status == 404 || me.Status == 405 {
		return true
	}
	for _, word := range []string{"not found", "not exist", "unknown model", "invalid model", "not a valid model", "no such model", "model_not_found", "is not supported"} {
		if strings.Contains(said, word) {
			return true
		}
	}
	return false
}

// blamesBound reports whether a request was refused for the member that bounds its
// output, which newer models call otherwise.
func blamesBound(err error) bool {
	var me *model.Error
	if !errors.As(err, &me) || me.Kind != model.ErrRequest {
		return false
	}
	for _, name := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens"} {
		if strings.Contains(me.Detail, name) {
			return true
		}
	}
	return false
}

// thoughts is what was seen of reasoning in all replies.
type thoughts struct {
	bytes, sealed int
	tokens        int64
}

func (t *thoughts) take(a *answer) {
	t.bytes += a.thought
	for _, p := range a.resp.Message.Parts {
		if p.Seal != nil && p.Seal.Data != "" {
			t.sealed++
		}
	}
	if a.resp.Usage != nil {
		t.tokens += orZero(a.resp.Usage.Reasoning)
	}
}

// reasoning says what was seen of it.
func (r *runner) reasoning() {
	t := r.thoughts
	var seen []string
	if t.bytes > 0 {
		seen = append(seen, fmt.Sprintf("%d bytes of it were shown", t.bytes))
	}
	if t.sealed > 0 {
		seen = append(seen, fmt.Sprintf("%d parts of replies came sealed", t.sealed))
	}
	if t.tokens > 0 {
		seen = append(seen, fmt.Sprintf("%d tokens of it were counted", t.tokens))
	}
	if len(seen) == 0 {
		r.set(Reasoning, No, "", "none was seen in %d requests", r.report.Requests)
		return
	}
	r.set(Reasoning, OK, "", "%s", strings.Join(seen, ", "))
}
