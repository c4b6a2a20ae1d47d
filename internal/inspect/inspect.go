// Package inspect is a backend of the Agent Hooks Protocol that shows what a
// harness sends it, and what becomes of that, on a local page. Given a
// registration it asks that registration's backends in its own place, and shows
// each of their answers.
//
// It guarantees that without a registration it never has an effect; that with one,
// what it answers is no less strict than what the backends behind it answered one
// after the other (§11): they are asked by ahp/harness, with the request's own
// capabilities or fewer, and a required check that fails denies. Showing never
// delays a decision: who reads too slowly is dropped, and what is kept is bounded
// in entries and in bytes. The page is served to loopback names alone, under a path
// that can't be guessed, and puts content into the document as text only.
//
// Do not assume that the entries are complete: the oldest go, and long messages are
// cut. Do not assume that the endpoint for messages knows who sends, unless
// Options.Token is set.
package inspect

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
)

// Options tunes an Inspector. The zero value only shows.
type Options struct {
	// Registration holds the backends to ask; nil asks nobody, and has no effect.
	Registration *ahp.Registration
	// Open connects to a backend of Registration; the Inspector closes what it returns.
	// It is required with Registration.
	Open func(b *ahp.Backend) (transport.Transport, error)
	// Token is the bearer token that messages over HTTP must carry; "" asks for none.
	Token string
	// MaxEntries and MaxBytes bound what is kept for the page; zero means 2000 entries
	// and 64 MiB of messages. The oldest go first.
	MaxEntries, MaxBytes int
}

// Inspector is a backend, perhaps with others behind it, and its page. Its methods
// may be called from any goroutine.
type Inspector struct {
	opts   Options
	log    *journal
	server *backend.Server
	secret string
	chain  *harness.Harness // nil without a registration
	full   map[ahp.SubscriptionID]bool
	told   told
	past   recorded
}

// New returns an Inspector. A registration that can't be used is an error, one with
// uploads included: the bytes of attachments aren't here to be sent on.
func New(opts Options) (*Inspector, error) {
	i := &Inspector{opts: opts, log: newJournal(opts.MaxEntries, opts.MaxBytes), secret: rand.Text(), full: map[ahp.SubscriptionID]bool{}}
	if opts.Registration != nil {
		if err := i.connect(); err != nil {
			return nil, err
		}
	}
	i.server = backend.New(judge{i}, backend.Options{Manifest: manifest(), Tap: i.tap})
	return i, nil
}

// connect opens the backends behind.
func (i *Inspector) connect() error {
	if i.opts.Open == nil {
		return errors.New("inspect: bug: a registration without Open")
	}
	for _, b := range i.opts.Registration.Hooks {
		for n := range b.Subscriptions {
			s := &b.Subscriptions[n]
			if s.Upload != nil {
				return fmt.Errorf("backend %s, subscription %d: found an upload, expected none: the bytes of attachments stay with the harness, so nothing here can send them on; register this backend with the harness itself", b.ID, n)
			}
			i.full[ahp.SubscriptionID{Backend: b.ID, Index: n}] = seesAll(s)
		}
	}
	h, err := harness.New(i.opts.Registration, harness.Options{
		Manifest: manifest(), Open: i.open, Telemetry: asking{i.log},
		Content: &harness.Content{}, // so that no ref of one receiver gets to another
	})
	i.chain = h
	return err
}

// seesAll reports whether a subscription is shown all content.
func seesAll(s *ahp.Subscription) bool {
	for _, sel := range s.Content {
		if sel != ahp.SelectBody {
			return false
		}
	}
	return true
}

// manifest offers everything, since what is really enforced is the harness's to say
// in each request. It names no tool path, so that no filter by paths drops an event
// from a path that isn't known here.
func manifest() *ahp.Manifest {
	m := ahp.NewManifest()
	for _, t := range ahp.EventTypes() {
		modes := []ahp.Mode{ahp.ModeObserve}
		if t.Interceptable() {
			modes = append(modes, ahp.ModeIntercept)
		}
		row := ahp.NewManifestEvent(t, modes...)
		if c := row.Capabilities; c != nil {
			if c.Flow != nil {
				if c.Flow.Operations = t.FlowOperations(); len(c.Flow.Operations) > 1 {
					c.Flow.RemainingContinuations, c.Flow.ContinuationCount = new(int64), new(int64)
				}
			}
			if t == ahp.UserElicitationRequest || t == ahp.UserElicitationResult {
				c.Elicitation = &ahp.ElicitationCapability{Form: &ahp.ElicitationMode{}, URL: &ahp.ElicitationMode{}}
			}
		}
		m.Events = append(m.Events, row)
	}
	m.Authentication = []string{"bearer", "oauth"}
	m.ManagedPolicy.Scopes = []string{"user", "project", "managed"}
	m.ToolPaths = []string{}
	return m
}

// Path is where Handler takes messages.
const Path = "/ahp"

// PagePath returns where Handler serves the page: it holds a secret, and whoever
// knows it can read all that is shown.
func (i *Inspector) PagePath() string { return "/" + i.secret + "/" }

// ServeStdio takes messages from in and answers on out, as a backend's command does
// (§16), until in ends or ctx does.
func (i *Inspector) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	return i.server.ServeStdio(ctx, in, out)
}

// Close ends the connections to the backends, and the reading of the page.
func (i *Inspector) Close() error {
	i.log.close()
	if i.chain == nil {
		return nil
	}
	return i.chain.Close()
}

// deadline returns what a harness should allow: all deadlines behind, and a second.
func (i *Inspector) deadline() time.Duration {
	d := time.Second
	if i.opts.Registration == nil {
		return d
	}
	for _, b := range i.opts.Registration.Hooks {
		for _, s := range b.Subscriptions {
			if s.TimeoutMs != nil {
				d += time.Duration(min(*s.TimeoutMs, 3_600_000)) * time.Millisecond
			}
		}
	}
	return d
}
