package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/abhed/abhed/internal/hooklog"
	"github.com/abhed/abhed/internal/hostconf"
	"github.com/abhed/abhed/internal/trust"
)

// state looks at AHP's own folder.
func (d *doctor) state() {
	before := len(d.report.Findings)
	if _, err := os.Lstat(d.o.State); errors.Is(err, fs.ErrNotExist) {
		d.add(Finding{Level: Note, Check: "state", What: "nothing was ever kept here", Where: d.o.State})
		return
	}
	d.owned(d.o.State, 0o077, fs.ModeDir)
	d.owned(hooklog.LogDir(d.o.State), 0o077, fs.ModeDir)
	d.owned(filepath.Join(d.o.State, "backup"), 0o022, fs.ModeDir)
	store := trust.Open(filepath.Join(d.o.State, "trust.json"))
	d.owned(store.Path(), 0o022, 0)
	list, err := store.List()
	if err != nil {
		d.add(Finding{Level: Wrong, Check: "trust", What: "no project's registration is trusted, because the store can't be read: " + err.Error(), Where: store.Path(), Do: "repair it, or move it away and run ahp trust again"})
	}
	for _, e := range list {
		if _, err := os.Stat(e.Path); errors.Is(err, fs.ErrNotExist) {
			d.add(Finding{Level: Warning, Check: "trust", What: "a registration that was trusted is gone: calls in that project are answered by --on-missing", Where: e.Path, Do: "restore it, or run ahp trust --remove " + e.Path})
		}
	}
	if len(d.report.Findings) == before {
		d.add(Finding{Level: OK, Check: "state", What: "AHP's own files are this account's alone", Where: d.o.State})
	}
}

// owned says where a file of ours is another's, or open to others.
func (d *doctor) owned(path string, forbidden, kind fs.FileMode) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	bad := func(what, do string) {
		d.add(Finding{Level: Wrong, Check: "state", What: what, Where: path, Do: do})
	}
	switch owner, _ := sysStat(info); {
	case err != nil:
		bad(err.Error(), "")
	case info.Mode().Type() != kind:
		bad(fmt.Sprintf("found %s, expected another kind of file", info.Mode()), "move it away")
	case owner != os.Getuid():
		bad(fmt.Sprintf("it belongs to user %d, who can change what AHP does", owner), "find out how that came, and chown it")
	case info.Mode().Perm()&forbidden != 0:
		bad(fmt.Sprintf("it is open to others (mode %v), who can change what AHP does", info.Mode().Perm()), fmt.Sprintf("chmod %o %s", info.Mode().Perm()&^forbidden, path))
	}
}

func sysStat(info fs.FileInfo) (uid int, is bool) {
	if info == nil {
		return 0, false
	}
	s, is := info.Sys().(*syscall.Stat_t)
	if !is {
		return os.Getuid(), false
	}
	return int(s.Uid), true
}

// service looks at the warm service.
func (d *doctor) service(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, d.o.Reach)
	defer cancel()
	st, err := d.o.Service(ctx, d.o.State)
	switch {
	case err != nil:
		d.add(Finding{Level: Warning, Check: "service", What: "the service doesn't say how it is: " + err.Error(), Do: "calls are judged without it; end it with ahp daemon stop"})
		return
	case st == nil:
		d.add(Finding{Level: OK, Check: "service", What: "no service runs; the next call starts one"})
		return
	}
	info, err := os.Stat(st.Program)
	self, selfErr := os.Stat(d.o.Self)
	if err != nil || selfErr != nil || !os.SameFile(info, self) || !info.ModTime().Equal(st.Changed) {
		d.add(Finding{Level: Warning, Check: "service-other", What: fmt.Sprintf("the service (process %d) runs another ahp, %s as it was at %s: the lines of this one are judged without a service", st.PID, st.Program, st.Changed.Format(time.RFC3339)), Do: "ahp daemon stop"})
		return
	}
	d.add(Finding{Level: OK, Check: "service", What: fmt.Sprintf("the service runs as process %d, from this program", st.PID)})
}

// heartbeat says when a host last asked.
func (d *doctor) heartbeat(h hostconf.Host) {
	list, err := hooklog.Last(hooklog.LogDir(d.o.State), 1, func(e *hooklog.Entry) bool {
		return e.Host == h.Name && !strings.HasPrefix(e.ID, canaryPrefix) && e.ID != ""
	})
	f := Finding{Host: h.Name, Level: OK, Check: "heartbeat"}
	var damaged *hooklog.DamagedError
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.As(err, &damaged):
		f.Level, f.What = Warning, "the log can't be read: "+err.Error()
	case len(list) == 0 && len(h.Targets) > 0 && h.Targets[0].Shape == hostconf.Bridge:
		f.Level, f.What, f.Do = Warning, "the bridge has never spoken: either the agent wasn't started since, or it doesn't load the file, which it says nowhere", "start the agent, have it run a tool, and run ahp doctor again"
	case len(list) == 0:
		f.Level, f.What = Note, "the agent has not asked yet"
	default:
		f.What = "the agent asked last at " + list[0].Time
		if when, err := time.Parse(time.RFC3339Nano, list[0].Time); err == nil {
			f.What = fmt.Sprintf("the agent asked last %s ago", time.Since(when).Round(time.Second))
		}
		f.Level = Note
	}
	d.add(f)
}
