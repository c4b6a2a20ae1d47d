package hookd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/hosts"
	"github.com/abhed/abhed/internal/hooklog"
	"github.com/abhed/abhed/internal/hookstate"
	"github.com/abhed/abhed/internal/run"
)

// Options tunes a Judge. The zero value is right for "ahp hook".
type Options struct {
	// Home is the home folder; "" means that of the account in the user database.
	Home string
	// Executable is this program, absolute; "" is asked of the system.
	Executable string
	// Managed is where the administrator's registration stands; "" is the usual place.
	Managed string
	// Mode is written in the log: hooklog.ModeService or, where it is "",
	// hooklog.ModeInProcess.
	Mode string
	// LookupEnv returns a variable that a registration names for a credential; nil means
	// os.LookupEnv.
	LookupEnv func(string) (string, bool)
	// CloseTimeout is how long observations that are under way are waited for at the
	// end; zero means 300 ms.
	CloseTimeout time.Duration
}

// Judge judges calls. Its methods may be called from any goroutine.
type Judge struct {
	opts   Options
	home   string
	state  string
	log    *hooklog.Log
	states *hookstate.Store
	hosts  map[string]*adapter.Host
	source string

	mu    sync.Mutex // guards what follows
	plans map[where]*plan
	// projects holds the sessions whose project is written down, by host and session.
	projects map[string]string
}

// again is how long the answer to a call counts for the same call: as long as a host may
// take from the hook of one of its files to that of another. Some models use an id a
// second time.
const again = 3 * time.Second

// maxPlans bounds the projects that are kept warm.
const maxPlans = 64

// New returns a judge. An error means that decisions could not be written down, or that
// the account has no home.
func New(o Options) (*Judge, error) {
	if o.Mode == "" {
		o.Mode = hooklog.ModeInProcess
	}
	if o.LookupEnv == nil {
		o.LookupEnv = os.LookupEnv
	}
	if o.CloseTimeout == 0 {
		o.CloseTimeout = 300 * time.Millisecond
	}
	j := &Judge{opts: o, home: o.Home, hosts: map[string]*adapter.Host{}, plans: map[where]*plan{}, projects: map[string]string{}}
	if j.home == "" {
		account, err := user.LookupId(strconv.Itoa(os.Getuid()))
		if err != nil {
			return nil, fmt.Errorf("the home folder of this account is unknown: %w", err)
		}
		j.home = account.HomeDir
	}
	if o.Executable == "" {
		path, err := os.Executable()
		if err != nil {
			return nil, err
		}
		j.opts.Executable = path
	}
	var err error
	if j.state, err = hooklog.StateDir(j.home); err != nil {
		return nil, err
	}
	if j.log, err = hooklog.Open(hooklog.LogDir(j.state), hooklog.Options{}); err != nil {
		return nil, err
	}
	if j.states, err = hookstate.Open(j.state, hookstate.Options{Window: again}); err != nil {
		return nil, errors.Join(err, j.log.Close())
	}
	j.source = "urn:ahp:hook:" + strconv.Itoa(os.Getuid()) + "@" + hostname()
	return j, nil
}

// hostname returns the machine's name as a URI may have it.
func hostname() string {
	name, err := os.Hostname()
	if err != nil || !ahp.IsURI("urn:ahp:hook:0@"+name) {
		return "unknown"
	}
	return name
}

// host returns the adapter of a name, or nil. It is made once: a process that judges one
// call needs one.
func (j *Judge) host(name string) *adapter.Host {
	j.mu.Lock()
	defer j.mu.Unlock()
	h := j.hosts[name]
	if h == nil {
		if h = hosts.Lookup(name); h != nil {
			j.hosts[name] = h
		}
	}
	return h
}

// Close ends what was kept warm. A service has the log on disk then; the process of one
// call leaves that to the system, for it is waited for.
func (j *Judge) Close() error {
	j.mu.Lock()
	plans := j.plans
	j.plans = map[where]*plan{}
	j.mu.Unlock()
	for _, p := range plans {
		p.close()
	}
	var err error
	if j.opts.Mode == hooklog.ModeService {
		err = j.log.Sync()
	}
	return errors.Join(err, j.log.Close())
}

// Idle closes what no session has used since before.
func (j *Judge) Idle(before time.Time) {
	j.mu.Lock()
	var plans []*plan
	for _, p := range j.plans {
		plans = append(plans, p)
	}
	j.mu.Unlock()
	for _, p := range plans {
		p.idle(before)
	}
}

// Sync has the log on disk.
func (j *Judge) Sync() error { return j.log.Sync() }

// errElsewhere tells that a call must be judged in its own process, because a
// registration names a variable of its environment.
var errElsewhere = errors.New("the call must be judged in its own process: a registration takes a credential from its environment")

// Do judges c. There is an error in a service alone, where only c's own process can judge
// it; whatever else goes wrong is answered by policy. ctx ends the call; its time is bounded by c's budget.
func (j *Judge) Do(ctx context.Context, c *Call) (Answer, error) {
	began := time.Now()
	// Asking ends with the budget, by the policy of who hasn't answered; what then still
	// runs is interrupted while there is time to say so.
	ctx, cancel := context.WithTimeout(ctx, (c.Budget()+c.Patience())/2)
	defer cancel()
	x := &judgement{j: j, c: c, began: began, until: began.Add(c.Budget()), entry: &hooklog.Entry{Host: c.Host, Native: c.Native, Mode: j.opts.Mode}}
	var a Answer
	err := run.Protect(func() (err error) {
		a, err = x.judge(ctx)
		return err
	})
	if errors.Is(err, errElsewhere) {
		return Answer{}, err
	}
	if err != nil {
		a = x.policy(err)
	}
	return a, nil
}

// ByPolicy answers a call that nobody could have judged, such as one whose event didn't
// come whole, and has that in the log.
func (j *Judge) ByPolicy(c *Call, why error) Answer {
	x := &judgement{j: j, c: c, began: time.Now(), named: j.host(c.Host), entry: &hooklog.Entry{Host: c.Host, Native: c.Native, Mode: j.opts.Mode}}
	x.host = hosts.Recognise(x.named, c.Data, c.Markers)
	return x.policy(why)
}

// plan returns what holds for w, reading it anew where a file has changed.
func (j *Judge) plan(h *adapter.Host, w where) (*plan, error) {
	j.mu.Lock()
	p := j.plans[w]
	j.mu.Unlock()
	if p != nil && p.fresh() {
		return p, nil
	}
	next, err := j.load(h, w)
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if other := j.plans[w]; other != nil && other != p {
		return other, nil // somebody else was faster
	}
	if p != nil {
		go p.close()
	}
	if len(j.plans) >= maxPlans {
		for k, old := range j.plans {
			go old.close()
			delete(j.plans, k)
			break
		}
	}
	j.plans[w] = next
	return next, nil
}

// newID returns the id of an event.
func newID() string {
	id, err := uuid.NewV7()
	if err != nil {
		return "t" + strconv.FormatInt(time.Now().UnixNano(), 36)
	}
	return id.String()
}

// StateDir returns where a judge with this home keeps its state.
func (j *Judge) StateDir() string { return filepath.Clean(j.state) }
