package hookd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abhed/abhed/internal/hookline"
	"github.com/abhed/abhed/internal/hooklog"
	"github.com/abhed/abhed/internal/run"
	"github.com/abhed/abhed/internal/strictjson"
)

// ServeOptions tunes Serve. The zero value is right for "ahp daemon run".
type ServeOptions struct {
	Judge Options
	// Idle is how long the service stays without a call; zero means ten minutes.
	Idle time.Duration
	// SessionIdle is how long the processes of a session stay without a call; zero means
	// ten minutes.
	SessionIdle time.Duration
	// MaxCalls bounds the calls at a time; more wait for their turn, unread. Zero means
	// 256.
	MaxCalls int
	// Ready, if set, is called once the service can be reached.
	Ready func()
}

// ErrRunning tells that another service of this account runs already.
var ErrRunning = errors.New("another service runs already")

// Status is what a service says of itself.
type Status struct {
	PID int `json:"pid"`
	// Program is the file that it runs; Changed is when that was changed.
	Program string    `json:"program"`
	Changed time.Time `json:"changed"`
	Started time.Time `json:"started"`
	// Calls counts the calls that were judged, Active those under way.
	Calls  int64 `json:"calls"`
	Active int   `json:"active"`
}

// service is a running service.
type service struct {
	opts   ServeOptions
	judge  *Judge
	id     hookline.Identity
	socket string
	lock   *os.File
	listen *net.UnixListener
	made   fs.FileInfo // of the socket
	slots  chan struct{}
	// readers are readers of connections that are at rest.
	readers sync.Pool

	mu      sync.Mutex // guards what follows
	started time.Time
	last    time.Time
	calls   int64
	active  int
	retired bool
	conns   sync.WaitGroup
}

// Serve runs the service of this account until ctx ends, until nobody has called it for
// the idle time, until it is told to stop, or until a newer program calls; calls that
// are under way end before it does. It returns ErrRunning if there is one already.
func Serve(ctx context.Context, o ServeOptions) (err error) {
	if o.Idle == 0 {
		o.Idle = 10 * time.Minute
	}
	if o.SessionIdle == 0 {
		o.SessionIdle = 10 * time.Minute
	}
	if o.MaxCalls == 0 {
		o.MaxCalls = 256
	}
	o.Judge.Mode = hooklog.ModeService
	s := &service{opts: o, slots: make(chan struct{}, o.MaxCalls), started: time.Now(), last: time.Now()}
	s.readers.New = func() any { return bufio.NewReaderSize(nil, 8<<10) }
	state, err := hooklog.StateDir(o.Judge.Home)
	if err != nil {
		return err
	}
	if s.lock, err = lockService(state); err != nil {
		return err
	}
	defer s.lock.Close()
	if s.judge, err = New(o.Judge); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.judge.Close()) }()
	if s.id, err = hookline.IdentityOf(s.judge.opts.Executable); err != nil {
		return err
	}
	s.socket = hookline.Socket(state)
	if err := s.bind(); err != nil {
		return err
	}
	return s.run(ctx)
}

// bind makes the socket. It appears under its name only once it can be connected to and
// is closed to others.
func (s *service) bind() error {
	fresh := fmt.Sprintf("%s.%d", s.socket, os.Getpid())
	_ = os.Remove(fresh)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: fresh, Net: "unix"})
	if err != nil {
		return fmt.Errorf("the service's socket can't be made: %w", err)
	}
	l.SetUnlinkOnClose(false)
	s.listen = l
	if err = os.Chmod(fresh, 0o600); err == nil {
		if s.made, err = os.Lstat(fresh); err == nil {
			err = os.Rename(fresh, s.socket)
		}
	}
	if err != nil {
		_ = os.Remove(fresh)
		return errors.Join(fmt.Errorf("the service's socket can't be made: %w", err), l.Close())
	}
	return nil
}

func (s *service) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, s.retire)()
	var tending sync.WaitGroup
	tending.Go(func() { s.tend(ctx) })
	if s.opts.Ready != nil {
		s.opts.Ready()
	}
	failed := s.accept()
	s.conns.Wait()
	cancel()
	tending.Wait()
	return failed
}

// idleWorkers is how many goroutines wait for the next call: what judges has a deep
// stack, which a new goroutine has to grow each time.
const idleWorkers = 16

// accept gives each connection to a goroutine, until the service retires.
func (s *service) accept() (failed error) {
	next := make(chan *net.UnixConn)
	defer close(next)
	var idle atomic.Int32
	for {
		s.slots <- struct{}{}
		conn, err := s.listen.AcceptUnix()
		if err != nil {
			<-s.slots
			if !s.isRetired() {
				failed = fmt.Errorf("the service can't accept calls: %w", err)
				s.retire()
			}
			return failed
		}
		select {
		case next <- conn:
			continue
		default: // nobody is idle
		}
		s.conns.Go(func() {
			for is := true; is; {
				s.attend(conn)
				if is = idle.Add(1) <= idleWorkers; is {
					conn, is = <-next
				}
				idle.Add(-1)
			}
		})
	}
}

// attend serves one connection.
func (s *service) attend(conn *net.UnixConn) {
	defer func() { <-s.slots }()
	defer conn.Close()
	_ = run.Protect(func() error { s.serve(conn); return nil }) // the hook judges by itself then
}

// tend looks after what time brings: the log on disk, idle sessions, the idle end.
func (s *service) tend(ctx context.Context) {
	tick := time.NewTicker(min(time.Second, s.opts.Idle/4+time.Millisecond))
	defer tick.Stop()
	synced := int64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.mu.Lock()
		calls, idle := s.calls, s.active == 0 && time.Since(s.last) >= s.opts.Idle
		s.mu.Unlock()
		if calls != synced {
			synced = calls
			_ = s.judge.Sync()
		}
		s.judge.Idle(time.Now().Add(-s.opts.SessionIdle))
		if idle {
			s.retire()
			return
		}
	}
}

func (s *service) isRetired() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.retired
}

// retire takes no more calls, and lets a successor start: the socket goes, if it is
// still this one's, and the lock. What is under way ends.
func (s *service) retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.retired {
		return
	}
	s.retired = true
	if now, err := os.Lstat(s.socket); err == nil && os.SameFile(now, s.made) {
		_ = os.Remove(s.socket) // with the lock held no other service has made one
	}
	_ = s.listen.Close()
	_ = s.lock.Close()
}

// do judges a call, and has counted it before its answer can be seen.
func (s *service) do(c *Call) (Answer, error) {
	s.mu.Lock()
	s.active++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.active--
		s.calls++
		s.last = time.Now()
	}()
	return s.judge.Do(context.Background(), c)
}

// frameTime bounds the reading of a call.
const frameTime = 10 * time.Second

// serve answers one call. Whatever is wrong with it, the hook judges it by itself: the
// connection just ends.
func (s *service) serve(conn *net.UnixConn) {
	if !ownPeer(conn) {
		return
	}
	_ = conn.SetDeadline(time.Now().Add(frameTime))
	fields, err := s.read(conn)
	if err != nil || len(fields) == 0 {
		return
	}
	if string(fields[0]) == controlMagic {
		s.control(conn, fields)
		return
	}
	c, id, err := hookline.DecodeCall(fields)
	if err != nil {
		return
	}
	if c == nil || id != s.id {
		if id.Changed.After(s.id.Changed) {
			s.retire()
		}
		return
	}
	_ = conn.SetDeadline(time.Now().Add(c.HostLimit()))
	if _, err := conn.Write([]byte{hookline.Taken}); err != nil {
		return // the hook has given up and judges by itself
	}
	a, err := s.do(c)
	if err != nil {
		return
	}
	_, _ = conn.Write(encodeAnswer(a))
}

// read reads the frame of a call.
func (s *service) read(conn *net.UnixConn) ([][]byte, error) {
	r := s.readers.Get().(*bufio.Reader)
	r.Reset(conn)
	defer func() {
		r.Reset(nil)
		s.readers.Put(r)
	}()
	return hookline.ReadFrame(r, hookline.MaxEvent+hookline.MaxSmall)
}

// controlMagic begins a frame that is no call.
const controlMagic = "ahp-control 1"

// control answers "status" and "stop".
func (s *service) control(conn *net.UnixConn, fields [][]byte) {
	if len(fields) != 2 {
		return
	}
	s.mu.Lock()
	st := Status{PID: os.Getpid(), Program: s.id.Path, Changed: s.id.Changed, Started: s.started, Calls: s.calls, Active: s.active}
	s.mu.Unlock()
	if string(fields[1]) == "stop" {
		s.retire()
	}
	if text, err := strictjson.Marshal(st); err == nil {
		_, _ = conn.Write(hookline.AppendFrame(nil, text))
	}
}

// Control asks the service at a socket for its status, and with stop to end. The error
// wraps hookline.ErrNoService if there is none.
func Control(ctx context.Context, socket string, stop bool) (*Status, error) {
	if err := hookline.CheckSocket(socket); err != nil {
		return nil, fmt.Errorf("%w: %w", hookline.ErrNoService, err)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", hookline.ErrNoService, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	word := "status"
	if stop {
		word = "stop"
	}
	if _, err := conn.Write(hookline.AppendFrame(nil, []byte(controlMagic), []byte(word))); err != nil {
		return nil, err
	}
	fields, err := hookline.ReadFrame(conn, hookline.MaxSmall)
	if err != nil || len(fields) != 1 {
		return nil, fmt.Errorf("the service gave no status: %w", errors.Join(err))
	}
	var st Status
	if err := strictjson.Unmarshal(fields[0], &st, strictjson.Options{}); err != nil {
		return nil, err
	}
	return &st, nil
}

// lockFile is the lock of the service within the state folder.
func lockFile(state string) string { return filepath.Join(state, "hook.lock") }
