package hookd

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/internal/strictjson"
)

// DenialExtension is the extension of a deny effect in which a backend may say more
// than a reason:
//
//	{"retryable": false, "accepted": "push to a branch instead"}
const DenialExtension = "org.abhed.denial"

// hint is what a backend says in DenialExtension.
type hint struct {
	Retryable *bool  `json:"retryable"`
	Accepted  string `json:"accepted"`
}

// denialText is what a model reads of a refusal: who refused, why, whether it may try
// again, and what would be accepted. repeat is how often this very call was refused
// before: the text then gets shorter and firmer.
func denialText(o *ahp.Outcome, repeat int) string {
	d := o.Denial()
	if d == nil {
		return "Refused: the check was interrupted before it came to a result. Try again once."
	}
	reason := adapter.Clean(d.Reason)
	if d.Synthetic {
		reason = "a required policy check could not be completed, so the call was refused. That is a fault of the check and no judgement of the call."
	}
	switch {
	case repeat > 0 && d.Synthetic:
		return fmt.Sprintf("Refused again (%s time, the same call): the check by %s still fails. That is no judgement of the call. Tell the person instead of repeating it: \"ahp log --denied\" says why.", nth(repeat+1), d.By.Backend)
	case repeat >= 3:
		return fmt.Sprintf("Refused for the %s time by %s. Repeating this call can't succeed: stop, and do something else or tell the person.", nth(repeat+1), d.By.Backend)
	case repeat > 0:
		return adapter.Clean(fmt.Sprintf("Refused again (%s time, the same call) by %s: %s\nDo not repeat it.", nth(repeat+1), d.By.Backend, firstSentence(reason)))
	}
	h := hintOf(o, d)
	var b strings.Builder
	fmt.Fprintf(&b, "Refused by %s: %s", d.By.Backend, reason)
	switch {
	case h.Retryable != nil && *h.Retryable:
		b.WriteString("\nRetryable: yes, later.")
	case d.Synthetic:
		b.WriteString("\nRetryable: yes, once the check works again; the person can see why with \"ahp log --denied\".")
	default:
		b.WriteString("\nRetryable: no, the same call will be refused again.")
	}
	if h.Accepted != "" {
		fmt.Fprintf(&b, "\nAccepted instead: %s", h.Accepted)
	}
	return adapter.Clean(b.String())
}

// hintOf returns what the backend that denied says beyond its reason.
func hintOf(o *ahp.Outcome, d *ahp.Denial) (h hint) {
	for i := range o.Trace {
		if o.Trace[i].By != d.By {
			continue
		}
		for _, e := range o.Trace[i].Effects {
			if deny, is := e.(*ahp.Deny); is && deny.Extensions[DenialExtension] != nil {
				if err := strictjson.Unmarshal(deny.Extensions[DenialExtension], &h, strictjson.Options{}); err != nil {
					return hint{}
				}
			}
		}
	}
	h.Accepted = adapter.Clean(h.Accepted)
	return h
}

// askText is the reason of a question to the person, and of the refusal that stands in
// for it. Why it is asked is what the backend says beside: "ask" has no room for it.
func askText(o *ahp.Outcome, native bool) string {
	who, why := "A policy", ""
	for i := range o.Trace {
		asks, said := false, ""
		for _, e := range o.Trace[i].Effects {
			switch e := e.(type) {
			case *ahp.Ask:
				asks = true
			case *ahp.Notice:
				said = ": " + e.Text
			}
		}
		if asks {
			who, why = o.Trace[i].By.Backend, said
		}
	}
	if native {
		return adapter.Clean(fmt.Sprintf("%s wants a person to decide about this call%s", who, cmp.Or(why, ".")))
	}
	return adapter.Clean(fmt.Sprintf("Refused: %s wants a person to decide about this call, and nobody can be asked from here%s\nRetryable: no. Tell the person what you want to run and why.", who, cmp.Or(why, ".")))
}

// withheldText stands in place of content that may not be seen.
func withheldText(o *ahp.Outcome) string {
	if d := o.Denial(); d != nil && !d.Synthetic {
		return adapter.Clean(fmt.Sprintf("[withheld by %s: %s]", d.By.Backend, d.Reason))
	}
	return "[withheld: a required policy check of this result could not be completed]"
}

func firstSentence(s string) string {
	if line, _, found := strings.Cut(s, "\n"); found {
		s = line
	}
	if first, _, found := strings.Cut(s, ". "); found {
		s = first + "."
	}
	return s
}

// nth returns n as an ordinal number.
func nth(n int) string {
	switch {
	case n%100 >= 11 && n%100 <= 13:
		return fmt.Sprintf("%dth", n)
	case n%10 == 1:
		return fmt.Sprintf("%dst", n)
	case n%10 == 2:
		return fmt.Sprintf("%dnd", n)
	case n%10 == 3:
		return fmt.Sprintf("%drd", n)
	}
	return fmt.Sprintf("%dth", n)
}
