package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/abhed/abhed/internal/proc"
	"github.com/abhed/abhed/internal/run"
)

// firstVersion is the protocol that a server is asked for first. Newer ones begin
// with another message, on which some older servers end; a server that refuses this
// one is tried again with what the SDK knows.
const firstVersion = "2025-11-25"

// link is one conversation with a server: a process, or an HTTP session. It ends by
// itself or by close, and then nothing of it is left.
type link struct {
	server  *server
	session *sdk.ClientSession
	// child and conn are of a process.
	child *proc.Child
	conn  *stdio
	// cut ends all requests of an HTTP session; status is that of the last response to a
	// message if it was an error, else 0.
	cut    context.CancelFunc
	idle   func()
	status atomic.Int64
	// sending counts the messages on their way to the server; fault is why we can't
	// go on with it, nil while we can.
	sending atomic.Int64
	fault   atomic.Pointer[string]

	work    *run.Group
	closing atomic.Bool
	born    time.Time
	dead    chan struct{} // closed when the conversation has ended and cause is set
	cause   string
}

// dial starts the server or connects to it and agrees on the protocol.
func (s *server) dial(ctx context.Context, version string) (*link, error) {
	l := &link{server: s, born: time.Now(), work: run.New(context.Background()), dead: make(chan struct{})}
	transport, err := l.transport()
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, l.abort)
	session, err := s.client().Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if !stop() && err == nil {
		err = ctx.Err()
		_ = session.Close() // aborted, so there is nothing to wait for
	}
	if err != nil {
		return nil, l.failed(ctx, err)
	}
	l.session = session
	l.work.Go(func(context.Context) error {
		l.ended(session.Wait())
		return nil
	})
	return l, nil
}

// transport starts the process or prepares the HTTP session.
func (l *link) transport() (sdk.Transport, error) {
	s := l.server
	if s.endpoint != nil {
		live, cut := context.WithCancel(context.Background())
		base := s.host.http.Clone()
		l.cut, l.idle = cut, base.CloseIdleConnections
		rt := &roundTripper{base: base, origin: s.endpoint, headers: s.cfg.Headers, hear: s.hear, live: live, send: l.send, broken: l.broken, status: &l.status, sideWait: min(s.cfg.StartTimeout/2, streamWait), endWait: closeGrace}
		return &sdk.StreamableClientTransport{Endpoint: s.endpoint.String(), HTTPClient: rt.client(), MaxRetries: 2, MaxEventSize: 2*maxMessage + 1<<20}, nil
	}
	spec := proc.Spec{
		Name: s.cfg.Name, Path: s.cfg.Command, Args: s.cfg.Args, Dir: s.cfg.Dir, Env: proc.Environ(s.cfg.Env),
		StderrTail: stderrTail, Grace: closeGrace,
	}
	if confine := s.host.opts.Confine; confine != nil {
		var err error
		if spec, err = confine(s.cfg.Name, spec); err != nil {
			return nil, err
		}
	}
	child, err := proc.Start(spec)
	if err != nil {
		return nil, err
	}
	l.child, l.conn = child, newStdio(child, l)
	l.work.Go(func(context.Context) error {
		// Descendants may hold the pipes open for ever; the server is the process that
		// was configured, and its end is the server's.
		<-child.Done()
		child.Kill()
		return nil
	})
	return l.conn, nil
}

// client returns a client of the SDK for one conversation.
func (s *server) client() *sdk.Client {
	o := &sdk.ClientOptions{
		Logger: slog.New(slog.DiscardHandler),
		//lint:ignore SA1019 servers of the versions before 2026-07-28 ask for roots, and have no other way to learn of them
		Capabilities: &sdk.ClientCapabilities{RootsV2: &sdk.RootCapabilities{}},
		// Without it the SDK doesn't ask for the notification where one has to; it is
		// heeded in hear.
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {},
	}
	if s.host.opts.Elicit != nil {
		o.Capabilities.Elicitation = &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}}
		// Its being there makes the SDK say that questions are answered; guard answers.
		o.ElicitationHandler = func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return &sdk.ElicitResult{Action: ElicitDecline}, nil
		}
	}
	c := sdk.NewClient(&sdk.Implementation{Name: "abhed", Version: s.host.opts.Version}, o)
	//lint:ignore SA1019 see above
	c.AddRoots(s.roots()...)
	c.AddReceivingMiddleware(s.guard)
	return c
}

// roots are the folders that a server is told of.
//
//lint:ignore SA1019 see client
func (s *server) roots() (out []*sdk.Root) {
	for _, dir := range s.host.opts.Roots {
		u := url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}
		//lint:ignore SA1019 see client
		out = append(out, &sdk.Root{URI: u.String(), Name: filepath.Base(dir)})
	}
	return out
}

// guard stands before everything that the SDK does with a server's request: a panic
// there would end this program. It takes questions out of the SDK's hands, which
// would fill in defaults that nobody agreed to.
func (s *server) guard(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (res sdk.Result, err error) {
		fail := run.Protect(func() error {
			if q, ok := req.(*sdk.ElicitRequest); ok && s.host.opts.Elicit != nil {
				var asked jsontext.Value
				if q.Params != nil {
					asked, _ = unwrap(q.Params.Meta) // hear wraps every one
				}
				answer, aerr := s.elicit(ctx, asked)
				if err = aerr; err == nil {
					res = answer
				}
				return nil
			}
			res, err = next(ctx, method, req)
			return nil
		})
		if fail != nil {
			s.remark(fmt.Sprintf("its request %s could not be handled: %v", quoted(method), fail))
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the request could not be handled"}
		}
		return res, err
	}
}

// send makes room for one message to the server, until sent is called. It fails if
// too many wait: the SDK answers every request, however fast they come and whether or
// not the server takes the answers.
func (l *link) send() (sent func(), err error) {
	sent = func() { l.sending.Add(-1) }
	if l.sending.Add(1) <= maxSending {
		return sent, nil
	}
	sent()
	return nil, l.broken(fmt.Errorf("more than %d messages wait for it to read them", maxSending))
}

// broken notes why there is no going on with the server and ends the conversation.
func (l *link) broken(fault error) error {
	text := fault.Error()
	l.fault.CompareAndSwap(nil, &text)
	l.abort() // at once: the SDK waits for messages that are on their way
	return fault
}

// abort ends the conversation without any waiting for the server.
func (l *link) abort() {
	if l.child != nil {
		l.child.Kill()
		return
	}
	l.cut()
}

// failed cleans up after a start that came to nothing and says why it did.
func (l *link) failed(ctx context.Context, err error) error {
	wire := answered(err)
	what := ""
	if l.child != nil {
		what = l.childEnd(ctx)
	}
	l.abort()
	_ = l.work.Wait() // it holds nothing that fails
	if l.idle != nil {
		l.idle()
	}
	switch {
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		what = fmt.Sprintf("it did not answer within %v", l.server.cfg.StartTimeout)
	case ctx.Err() != nil:
		return ctx.Err()
	case wire != nil:
		what = fmt.Sprintf("it refused with error %d: %s", wire.Code, cut(visible(wire.Message), 500))
	case l.child == nil:
		what = l.httpFault(err)
	case what == "":
		what = "it could not be spoken with: " + err.Error()
	}
	f := &startFailure{wire: wire != nil, msg: what}
	if l.child != nil {
		f.stderr = l.child.StderrTail()
	}
	return f
}

// codeRejected is the code of the SDK's own error for a request that could not be
// sent, which otherwise looks like an answer.
const codeRejected = -32005

// answered returns the error that the server itself answered with, nil if err is
// something else.
func answered(err error) *jsonrpc.Error {
	var wire *jsonrpc.Error
	if !errors.As(err, &wire) || wire.Code == codeRejected {
		return nil
	}
	return wire
}

// startFailure says why a conversation could not begin.
type startFailure struct {
	msg, stderr string
	// wire says that the server answered, with an error.
	wire bool
}

func (f *startFailure) Error() string { return withTail(f.msg, f.stderr) }

// withTail adds the end of standard error to a message.
func withTail(msg, stderr string) string {
	if stderr = visible(stderr); stderr == "" {
		return msg
	}
	return msg + ". The end of what it wrote on standard error: " + stderr
}

// childEnd says how the process ended, if it did so by itself; else "".
func (l *link) childEnd(ctx context.Context) string {
	timer := time.NewTimer(deathWait / 2)
	defer timer.Stop()
	select {
	case <-l.child.Done():
		return "the process ended: " + l.child.Exit().String()
	case <-ctx.Done():
	case <-timer.C:
	}
	return ""
}

// httpFault says what went wrong with an HTTP session.
func (l *link) httpFault(err error) string {
	var ue *url.Error
	switch code, fault := int(l.status.Load()), l.fault.Load(); {
	case fault != nil:
		return *fault
	case errors.Is(err, sdk.ErrSessionMissing):
		return "it no longer knows the session"
	case errors.As(err, &ue):
		return fmt.Sprintf("%s could not be reached: %v", describeURL(l.server.endpoint), ue.Err)
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return fmt.Sprintf("%s answered with status %d %s; check the headers that are configured for it", describeURL(l.server.endpoint), code, http.StatusText(code))
	case code != 0:
		return fmt.Sprintf("%s answered with status %d %s", describeURL(l.server.endpoint), code, http.StatusText(code))
	default:
		return err.Error()
	}
}

// ended is called once, when the session is over for whatever reason.
func (l *link) ended(err error) {
	defer close(l.dead)
	stderr := ""
	switch {
	case l.child == nil && err != nil:
		l.cause = l.httpFault(err)
	case l.child == nil:
		l.cause = "the connection was closed"
	default:
		if fault := l.fault.Load(); fault != nil {
			l.cause = *fault
		} else if l.cause = l.childEnd(context.Background()); l.cause == "" {
			l.cause = "it closed its standard output and went on running"
		}
	}
	l.abort()
	if l.child != nil {
		stderr = l.child.StderrTail()
	}
	if !l.closing.Load() || l.fault.Load() != nil {
		l.server.died(l.cause, stderr)
	}
}

// isDead reports whether the conversation has ended.
func (l *link) isDead() bool {
	select {
	case <-l.dead:
		return true
	default:
		return false
	}
}

// over reports whether there is no going on with the conversation, ended or not.
func (l *link) over() bool { return l.isDead() || l.fault.Load() != nil }

// close ends the conversation politely and returns when nothing of it is left.
func (l *link) close() {
	l.closing.Store(true)
	if l.child != nil {
		l.child.Stop()
	} else {
		timer := time.AfterFunc(closeGrace, l.cut)
		_ = l.session.Close() // says goodbye; a server that doesn't listen costs the grace
		timer.Stop()
	}
	<-l.dead
	_ = l.work.Wait() // a panic has been told by nobody: it costs this server alone
	_ = l.session.Close()
	if l.idle != nil {
		l.idle()
	}
}
