package conformance

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest/fault"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/internal/strictjson"
)

// reaction is what a backend does about a message. The zero value agrees: it
// answers a request with no effects, and takes a notification.
type reaction struct {
	// raw is written as it is, in place of the answer that agrees.
	raw []byte
	// fault misbehaves in place of an answer.
	fault *fault.Fault
	// silent never answers.
	silent bool
	// wrong tells that raw breaks the protocol on purpose, or isn't one answer.
	wrong bool
	// hold is how long the answer is held back.
	hold time.Duration
}

// accept takes the relays until the listener is closed.
func (s *stage) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[conn] = true
		closed := s.closed
		s.mu.Unlock()
		if closed {
			conn.Close()
		}
		s.relays.Go(func() {
			s.serveRelay(conn)
			conn.Close()
			s.mu.Lock()
			delete(s.conns, conn)
			s.mu.Unlock()
		})
	}
}

// process is a relay that plays one backend.
type process struct {
	s       *stage
	w       *frameWriter
	conn    net.Conn
	backend int
	link    int
	pending sync.WaitGroup
	count   int
}

func (s *stage) serveRelay(conn net.Conn) {
	r := bufio.NewReader(conn)
	kind, data, err := readFrame(r)
	var h hello
	if err != nil || kind != frameHello || strictjson.Unmarshal(data, &h, strictjson.Options{}) != nil {
		return
	}
	backend := slices.Index(s.keys, h.Key)
	if backend < 0 {
		return
	}
	p := &process{s: s, w: &frameWriter{w: conn}, conn: conn, backend: backend, link: s.link(h.Names)}
	b := &s.play.backends[backend]
	switch {
	case b.deaf && b.stays:
		s.happened(p.link, "a process for %s was started; it reads nothing", backendID(backend))
		_, _, _ = readFrame(r) // until it is killed
		return
	case b.deaf:
		s.happened(p.link, "a process for %s was started; it ends with status 3", backendID(backend))
		_ = p.w.write(frameExit, []byte("3"))
		return
	}
	s.happened(p.link, "a process for %s was started", backendID(backend))
	if s.play.name == playPublic {
		s.happened(p.link, saysNames+"%s", strings.Join(h.Names, " "))
	}
	if p.w.write(frameGo, nil) == nil {
		p.read(r)
	}
}

// read takes what the process reads, until that ends.
func (p *process) read(r *bufio.Reader) {
	var buf []byte
	for {
		kind, data, err := readFrame(r)
		switch {
		case err != nil:
			p.s.happened(p.link, "the process was ended from outside")
			if len(buf) > 0 {
				p.rest(buf)
			}
			return
		case kind == frameEOF:
			p.s.happened(p.link, saysEOF)
			if len(buf) > 0 {
				p.rest(buf)
			}
			p.pending.Wait()
			return
		case kind != frameInput:
			continue
		}
		buf = append(buf, data...)
		for {
			i := bytes.IndexByte(buf, '\n')
			if i < 0 {
				break
			}
			line := buf[:i]
			buf = bytes.Clone(buf[i+1:])
			p.line(line)
		}
	}
}

// rest notes bytes without a newline at their end.
func (p *process) rest(buf []byte) {
	p.s.arrive(&arrival{backend: p.backend, link: p.link, raw: buf, framing: "the last line has no newline"})
}

// line takes one line.
func (p *process) line(raw []byte) {
	a := &arrival{backend: p.backend, link: p.link, raw: raw}
	p.count++
	var body object
	if strictjson.Unmarshal(raw, &body, strictjson.Options{MaxBytes: maxAnswer}) != nil {
		a.framing = "the line isn't one JSON object"
	} else if p.s.env.binding == StdioPerEvent && p.count > 1 {
		a.framing = "a process for one message got another"
	}
	p.s.arrive(a)
	p.pending.Go(func() { p.react(a) })
}

// react answers a line, or does what the script says instead.
func (p *process) react(a *arrival) {
	re := p.s.reaction(a)
	p.s.judge(a, &re)
	if !p.s.wait(a, re.hold) || re.silent {
		return
	}
	switch {
	case re.fault != nil:
		in := &once{data: append(bytes.Clone(a.raw), '\n')}
		out := &noted{to: p.w.as(frameOutput)}
		code := re.fault.Run(p.s.ctx, in, out, p.w.as(frameStderr))
		p.s.answered(a, []byte(re.fault.Name+": "+out.text()))
		if !in.ended {
			_ = p.w.write(frameExit, []byte(strconv.Itoa(code)))
		}
	case re.raw != nil:
		p.s.answered(a, bytes.TrimSpace(re.raw))
		_ = p.w.write(frameOutput, re.raw)
	case a.body["id"] != nil:
		text := agree(a)
		p.s.answered(a, text)
		_ = p.w.write(frameOutput, append(text, '\n'))
	}
}

// judge notes a fault of the suite: an answer that is meant to be valid, and isn't.
func (s *stage) judge(a *arrival, re *reaction) {
	if re.raw == nil || re.wrong {
		return
	}
	q, err := ahp.DecodeRequest(a.raw)
	i, is := q.(*ahp.Intercept)
	if err != nil || !is || !a.offers(ahp.EffectDeny) {
		return // the harness's own fault, which checks see
	}
	if _, err := harness.Evaluate(i, bytes.TrimSpace(re.raw)); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.err = fmt.Errorf("the suite's own answer about call %d is invalid: %w", a.call, err)
	}
}

// once is a reader of one message that knows whether its end was asked for.
type once struct {
	data  []byte
	ended bool
}

func (o *once) Read(p []byte) (int, error) {
	if len(o.data) == 0 {
		o.ended = true
		return 0, io.EOF
	}
	n := copy(p, o.data)
	o.data = o.data[n:]
	return n, nil
}

// noted keeps the start of what is written.
type noted struct {
	to    io.Writer
	start []byte
}

func (n *noted) Write(p []byte) (int, error) {
	n.start = append(n.start, p[:min(len(p), max(0, maxLineText-len(n.start)))]...)
	return n.to.Write(p)
}

func (n *noted) text() string {
	if len(n.start) == 0 {
		return "nothing"
	}
	return string(n.start)
}

// serveHTTP takes a message over HTTP.
func (s *stage) serveHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		return
	}
	defer s.handlers.Done()
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxAnswer))
	if err != nil {
		return
	}
	a := &arrival{raw: raw, header: r.Header.Clone(), link: s.link(nil), framing: framingOf(r)}
	a.backend = slices.Index(s.keys, strings.TrimPrefix(r.URL.Path, "/"))
	if a.backend < 0 {
		s.stray(a, r)
		elsewhere(w, r, raw)
		return
	}
	s.arrive(a)
	s.tellToken(a)
	re := s.reaction(a)
	s.judge(a, &re)
	if !s.wait(a, re.hold) {
		return
	}
	switch {
	case re.silent:
		select {
		case <-r.Context().Done():
		case <-s.ctx.Done():
		}
		return
	case re.fault != nil:
		r.Body = io.NopCloser(bytes.NewReader(raw))
		s.answered(a, []byte(re.fault.Name+": "+re.fault.About))
		re.fault.ServeHTTP(w, r)
		return
	case a.body["id"] == nil && re.raw == nil:
		s.answered(a, []byte("status 202"))
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if re.raw == nil {
		re.raw = agree(a)
	}
	s.answered(a, bytes.TrimSpace(re.raw))
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(re.raw) // a harness that is gone needs no answer
}

// elsewhere answers where a redirect leads: with a denial, which only a harness that
// follows redirects sees.
func elsewhere(w http.ResponseWriter, r *http.Request, raw []byte) {
	f, known := fault.Find("redirect")
	if !known {
		http.NotFound(w, r)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(raw))
	r.URL.Path = "/elsewhere"
	f.ServeHTTP(w, r)
}

// stray notes a request to where nothing was registered.
func (s *stage) stray(a *arrival, r *http.Request) {
	a.line = s.log.add(a.link, FromPeer, append([]byte(r.Method+" "+r.URL.Path+": "), a.raw...))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.strays = append(s.strays, a)
}

// framingOf says what is wrong with an HTTP request beside its body; "" is
// nothing.
func framingOf(r *http.Request) string {
	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	switch {
	case r.Method != http.MethodPost:
		return "the method is " + r.Method
	case !strings.EqualFold(strings.TrimSpace(media), "application/json"):
		return "the media type is " + strconv.Quote(r.Header.Get("Content-Type"))
	case len(r.Header.Values("Authorization")) > 1:
		return "there is more than one Authorization header"
	}
	return ""
}

// agree is the answer of a backend that has nothing to say: no effects, and an error
// where a harness asks for a manifest, which nobody has to have (§3).
func agree(a *arrival) []byte {
	if a.method() == ahp.MethodIntercept {
		return effects(a)
	}
	raw, err := encode(object{"jsonrpc": "2.0", "id": a.body["id"], "error": object{"code": ahp.CodeMethodNotFound, "message": "no such method"}})
	if err != nil {
		return nil // made of the suite's own values and an id that was decoded
	}
	return raw
}

// effects is a response with effects to a request.
func effects(a *arrival, list ...any) []byte {
	if list == nil {
		list = []any{}
	}
	return response(a, object{"protocolVersion": "draft", "effects": list})
}

// response is a response to a request, as one line without its newline.
func response(a *arrival, result object) []byte {
	raw, err := encode(object{"jsonrpc": "2.0", "id": a.body["id"], "result": result})
	if err != nil {
		return nil // made of the suite's own values and an id that was decoded
	}
	return raw
}
