package harness

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/run"
)

// Content is how a host lends the content of its events to backends (§7, §19). An
// attachment of the host's is a part with selection "body", and as Body.Ref a name
// that the host itself understands: the name never leaves the program, and always
// stands for the same bytes. A subscription that selects the attachment's body, and
// has an upload, is sent the bytes before it is asked; what it is asked then has the
// receiver's own ref in that place. A receiver's ref in an accepted effect becomes
// the host's name again.
//
// The bytes are read once per event, shared by all receivers, and uploaded to each
// subscription by itself, so no ref ever serves two of them. The uploads to all
// matching interceptors begin together, before the first is asked; who isn't asked
// after all has them for the observation that it gets instead. Nothing is read or
// uploaded for a view of metadata, nor for what is omitted.
//
// Content that a subscription asks for and can't have leaves a gap: because it could
// not be read or uploaded, or because Authorize refused it. At an interceptor that is
// a failure of class content: a fail-closed one isn't asked, and denies; a fail-open
// one is asked with the gap, and Answer.Content says why. A subscription without
// upload was never to have bytes: its gaps are no failure.
type Content struct {
	// Open returns the bytes of attachment p of event e; it is closed after use. It
	// must return, and the reader end, soon after ctx ended. Nil lends no bytes: then
	// New refuses registrations with an upload.
	Open func(ctx context.Context, e *ahp.Event, p *ahp.Part) (io.ReadCloser, error)
	// Authorize reports whether a subscription may have the body of a part, which it
	// selects: text and attachments alike. Content that is repeated elsewhere, in tool
	// input or native data, is for the host to leave out. It is asked for each part
	// when the event is about to be shown, and before its attachment is opened; it
	// must return soon, and a panic of it refuses. Nil permits.
	Authorize func(by ahp.SubscriptionID, e *ahp.Event, p *ahp.Part) bool
	// Receiver connects to where a subscription has its uploads sent; the harness closes
	// what it returns. httptransport.NewUploader does it. A receiver with a method
	// Ready(context.Context) error is asked whether its credential is there.
	Receiver func(by ahp.SubscriptionID, u *ahp.Upload) (Receiver, error)
	// MaxBytes bounds one attachment, MaxEventBytes those of one event together, and
	// MaxHeldBytes what is held of all events at a time; zero means 16, 64 and 256 MiB.
	// The manifest's maxUploadBytes holds as well.
	MaxBytes, MaxEventBytes, MaxHeldBytes int64
	// OpenTimeout bounds the reading of one attachment; zero means 5 s.
	OpenTimeout time.Duration
	// MaxUploads bounds the uploads at a time, and so many attachments are read at a
	// time; zero means 4. Waiting for one's turn
	// counts against the upload's timeoutMs, as everything does from the first upload
	// of an event to a subscription on.
	MaxUploads int
}

// Receiver takes the uploads of one subscription. Its methods may be called from any
// goroutine.
type Receiver interface {
	// Upload sends body and returns the receiver's confirmation. It returns when ctx
	// ends. The error is an *ahp.Failure, or wraps that of ctx; any other is a bug, and
	// no failure policy opens it. body must not be changed nor kept.
	Upload(ctx context.Context, body []byte) (*ahp.Receipt, error)
	// Close ends what is pending, within a bounded time.
	Close() error
}

// maxAttachments bounds the attachments of one event that are uploaded to one
// subscription.
const maxAttachments = 64

// The reasons of gaps. They tell a backend no more than it needs.
const (
	gapNoUpload     = "the content was not uploaded"
	gapUnauthorised = "content permission denied"
	gapUnavailable  = "the content could not be had"
)

// lendContent checks the options and fills in what is zero.
func (h *Harness) lendContent(reg *ahp.Registration) error {
	var c Content
	if h.opts.Content != nil {
		c = *h.opts.Content
	}
	for i := range reg.Hooks {
		for j := range reg.Hooks[i].Subscriptions {
			if reg.Hooks[i].Subscriptions[j].Upload != nil && (c.Open == nil || c.Receiver == nil) {
				return errors.New("harness: backend " + reg.Hooks[i].ID + ": uploads aren't supported here; leave upload out, and attachments are sent without their bodies")
			}
		}
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = 16 << 20
	}
	if m := h.opts.Manifest.Limits.MaxUploadBytes; m != nil {
		c.MaxBytes = min(c.MaxBytes, *m)
	}
	if c.MaxEventBytes == 0 {
		c.MaxEventBytes = 64 << 20
	}
	if c.MaxHeldBytes == 0 {
		c.MaxHeldBytes = 256 << 20
	}
	if c.OpenTimeout == 0 {
		c.OpenTimeout = 5 * time.Second
	}
	if c.MaxUploads == 0 {
		c.MaxUploads = 4
	}
	if c.MaxBytes < 0 || c.MaxEventBytes < 0 || c.MaxHeldBytes < 0 || c.OpenTimeout < 0 || c.MaxUploads < 0 {
		return errors.New("harness: a bound of Content is negative")
	}
	h.content, h.uploading, h.reading = c, make(chan struct{}, c.MaxUploads), make(chan struct{}, c.MaxUploads)
	return nil
}

// openReceiver connects to the upload endpoint of s, if it has one.
func (h *Harness) openReceiver(s *subscription) error {
	if s.cfg.Upload == nil {
		return nil
	}
	var r Receiver
	err := run.Protect(func() (err error) {
		r, err = h.content.Receiver(s.id, s.cfg.Upload)
		return err
	})
	if err == nil && r == nil {
		err = errors.New("bug: Receiver returned neither a receiver nor an error")
	}
	if err != nil {
		return err
	}
	s.receiver = r
	if r, ok := r.(interface{ Ready(context.Context) error }); ok {
		ctx, cancel := context.WithTimeout(h.ctx, h.opts.ObserveTimeout)
		defer cancel()
		return r.Ready(ctx)
	}
	return nil
}

// permits reports whether s may have the body of p.
func (h *Harness) permits(s *subscription, e *ahp.Event, p *ahp.Part) bool {
	if h.content.Authorize == nil {
		return true
	}
	permitted := false
	err := run.Protect(func() error {
		permitted = h.content.Authorize(s.id, e, p)
		return nil
	})
	return err == nil && permitted
}
