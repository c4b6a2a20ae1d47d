package install

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/internal/confedit"
	"github.com/abhed/abhed/internal/hostconf"
)

// Options say what is installed where.
type Options struct {
	Scope hostconf.Scope
	// Roots are where the host's files are. The project's folder is needed for the
	// project scope alone.
	Roots hostconf.Roots
	// State is AHP's state folder, which keeps the backup.
	State string
	// Call is how the line starts ahp; host, event and limit are filled in.
	Call Call
	// BinarySHA256 and Registrations are remembered for the doctor; see [Seen].
	BinarySHA256  string
	Registrations []Sum
	// Trust is the person's consent to write Codex's trust in our hooks.
	Trust bool
}

// Action is what becomes of a file.
type Action string

// The actions.
const (
	Create Action = "create"
	Change Action = "change"
	Remove Action = "remove"
	Keep   Action = "keep" // it is as it should be
)

// File is one file of a plan.
type File struct {
	Path   string
	Action Action
	// Before and After are its bytes; nil if there is no file.
	Before, After []byte

	state confedit.State
	mode  fs.FileMode
	// record is what an earlier installation remembers, when it is taken back.
	record *fileRecord
}

// Plan is an installation, or its opposite, that has not been made yet.
type Plan struct {
	Host  string
	Scope hostconf.Scope
	Files []File
	// Remains says what is left for the person to do.
	Remains []string

	dir      string // of the manifest
	manifest manifest
	undo     bool
}

// Changes reports whether the plan changes a file.
func (p *Plan) Changes() bool {
	return slices.ContainsFunc(p.Files, func(f File) bool { return f.Action != Keep })
}

// Install plans what is written so that a host asks AHP. It writes nothing.
func Install(h hostconf.Host, dialect *adapter.Host, o Options) (*Plan, error) {
	p, old, err := start(h, o)
	if err != nil {
		return nil, err
	}
	p.manifest.Seen = &Seen{o.Call, o.BinarySHA256, o.Registrations}
	list, err := units(h, dialect, o)
	if err != nil {
		return nil, err
	}
	for _, u := range list {
		if u.put == nil {
			// A part that is not asked for this time: it stays as it is, and known.
			if r := old.find(u.path); r != nil {
				p.manifest.Files = append(p.manifest.Files, *r)
			}
			continue
		}
		if err := p.add(u, o, old); err != nil {
			return nil, err
		}
	}
	// Files that an earlier ahp wrote and this one does not are still to be taken back.
	if old != nil {
		for _, r := range old.Files {
			if p.manifest.find(r.Path) == nil {
				p.manifest.Files = append(p.manifest.Files, r)
			}
		}
	}
	for _, t := range h.In(o.Scope) {
		for _, text := range t.Remains {
			if !slices.Contains(p.Remains, text) && !(o.Trust && h.Name == "codex" && o.Scope == hostconf.User) {
				p.Remains = append(p.Remains, text)
			}
		}
	}
	return p, nil
}

// Uninstall plans what takes an installation back. It writes nothing.
func Uninstall(h hostconf.Host, o Options) (*Plan, error) {
	p, old, err := start(h, o)
	if err != nil {
		return nil, err
	}
	p.undo = true
	list, err := units(h, nil, o)
	if err != nil {
		return nil, err
	}
	for _, u := range list {
		if err := p.take(u, o, old); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func start(h hostconf.Host, o Options) (*Plan, *manifest, error) {
	p := &Plan{Host: h.Name, Scope: o.Scope, dir: recordDir(h.Name, o)}
	p.manifest = manifest{Version: 1, Host: h.Name, Scope: string(o.Scope)}
	if o.Scope == hostconf.Project {
		p.manifest.Project = o.Roots.Project
	}
	old, err := readManifest(p.dir)
	return p, old, err
}

// open reads a unit's file.
func open(u unit, o Options) (File, error) {
	if o.Scope == hostconf.Project && !u.outside {
		if err := checkInProject(u.path, o.Roots.Project); err != nil {
			return File{}, err
		}
	}
	s, err := confedit.Read(u.path)
	if err != nil {
		return File{}, err
	}
	f := File{Path: u.path, Action: Keep, Before: s.Data, After: s.Data, state: s, mode: s.Mode}
	if !s.Exists {
		f.Before, f.After, f.mode = nil, nil, u.mode
	} else if f.Before == nil {
		f.Before, f.After = []byte{}, []byte{}
	}
	return f, nil
}

// add plans one file of an installation.
func (p *Plan) add(u unit, o Options, old *manifest) error {
	f, err := open(u, o)
	if err != nil {
		return err
	}
	after, traces, err := u.put(f.Before)
	if err != nil {
		return err
	}
	f.After = after
	if u.remark != nil {
		p.Remains = append(p.Remains, u.remark(after)...)
	}
	was := old.find(u.path)
	switch {
	case f.Before == nil:
		f.Action = Create
	case !bytes.Equal(f.Before, after):
		f.Action = Change
	}
	if u.whole && u.mode == 0o755 && f.mode != u.mode {
		f.Action, f.mode = Change, u.mode
		if f.Before == nil {
			f.Action = Create
		}
	}
	record := fileRecord{Path: u.path, Existed: f.Before != nil, AfterHash: hash(after), Traces: traces, before: f.Before}
	switch {
	case was != nil && was.AfterHash == hash(f.Before) && f.Before != nil:
		// As we left it: what was before is known.
		record.Existed, record.Before, record.BeforeHash, record.before = was.Existed, was.Before, was.BeforeHash, nil
		record.Traces, record.Made = append(slices.Clone(was.Traces), traces...), was.Made
	case f.Before != nil:
		// Somebody changed it since, or we do not know: what was before is what is
		// there without ours.
		var earlier []confedit.Trace
		if was != nil {
			earlier, record.Made = was.Traces, was.Made
		}
		if record.before, err = u.strip(f.Before, earlier); err != nil {
			return err
		}
		record.Existed = !(u.whole && len(record.before) == 0) && !(was != nil && !was.Existed && len(bytes.TrimSpace(record.before)) == 0)
		record.Traces = append(slices.Clone(earlier), traces...)
		if record.Existed && record.before == nil {
			record.before = []byte{}
		}
	}
	if record.Before == "" {
		record.BeforeHash = hash(record.before)
	}
	p.manifest.Files = append(p.manifest.Files, record)
	p.Files = append(p.Files, f)
	return nil
}

// take plans one file of an uninstallation.
func (p *Plan) take(u unit, o Options, old *manifest) error {
	f, err := open(u, o)
	if err != nil {
		return err
	}
	if f.Before == nil {
		return nil
	}
	r := old.find(u.path)
	f.record = r
	switch {
	case r != nil && r.AfterHash == hash(f.Before):
		original, err := r.original(p.dir)
		if err == nil {
			f.After = original
			break
		}
		p.Remains = append(p.Remains, err.Error()+"; our entries were removed instead")
		fallthrough
	default:
		var traces []confedit.Trace
		existed := true
		if r != nil {
			traces, existed = r.Traces, r.Existed
		}
		if f.After, err = u.strip(f.Before, traces); err != nil {
			return err
		}
		if len(bytes.TrimSpace(f.After)) == 0 && (!existed || u.whole) {
			f.After = nil
		}
	}
	switch {
	case f.After == nil:
		f.Action = Remove
	case !bytes.Equal(f.Before, f.After):
		f.Action = Change
	default:
		return nil
	}
	p.Files = append(p.Files, f)
	return nil
}

// Apply makes the plan: the backup first, then file by file. The caller holds the
// lock. After an error the manifest tells what was before, and uninstalling works.
func (p *Plan) Apply() error {
	if !p.undo {
		// Backup and manifest are no worse for being there if nothing changes.
		if err := p.writeManifest(); err != nil {
			return fmt.Errorf("the backup can't be written, so nothing was: %w", err)
		}
	}
	for i := range p.Files {
		if err := p.Files[i].apply(); err != nil {
			return err
		}
	}
	if p.undo {
		p.removeFolders()
		return p.forget()
	}
	return nil
}

// removeFolders removes the folders that were made for files which are gone now.
func (p *Plan) removeFolders() {
	var made []string
	for _, f := range p.Files {
		if f.Action == Remove && f.record != nil {
			made = append(made, f.record.Made...)
		}
	}
	// The longest first; one in which somebody else lives stays.
	slices.SortFunc(made, func(a, b string) int { return len(b) - len(a) })
	for _, dir := range made {
		_ = os.Remove(dir)
	}
}

// writeManifest notes the folders that will be made, and writes.
func (p *Plan) writeManifest() error {
	for i := range p.Files {
		f := &p.Files[i]
		if f.Before != nil {
			continue
		}
		made, err := makeParents(f.Path)
		if err != nil {
			return err
		}
		r := p.manifest.find(f.Path)
		r.Made = append(made, r.Made...)
	}
	return p.manifest.write(p.dir)
}

func (f *File) apply() error {
	switch f.Action {
	case Keep:
		return nil
	case Remove:
		return confedit.Delete(f.state)
	}
	s := f.state
	s.Mode = f.mode
	return confedit.Write(s, f.After)
}

// forget removes the backup of an installation that was taken back.
func (p *Plan) forget() error {
	entries, err := os.ReadDir(p.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.Remove(filepath.Join(p.dir, e.Name())); err != nil {
			return err
		}
	}
	return os.Remove(p.dir)
}
