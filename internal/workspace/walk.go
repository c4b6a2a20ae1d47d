package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/abhed/abhed/internal/policy"
)

// ErrStop ends a walk without an error, when a visit returns it.
var ErrStop = errors.New("the walk has seen enough")

// Bounds of a walk.
const (
	maxDepth   = 200
	maxWorkers = 8
	// DefaultMaxFiles is how many files a walk visits unless told otherwise.
	DefaultMaxFiles = 1_000_000
)

// WalkOptions says what a walk visits. The zero value is the usual: no hidden and no
// ignored files.
type WalkOptions struct {
	// Hidden includes names that begin with a dot. ".git" is never entered, unless
	// the walk starts in it.
	Hidden bool
	// NoIgnore includes what ignore files exclude.
	NoIgnore bool
	// GlobalIgnore is the content of the user's own ignore file, which counts least.
	GlobalIgnore string
	// MaxFiles bounds the files visited; zero means DefaultMaxFiles.
	MaxFiles int
	// Workers is how many goroutines read folders; zero means one per processor, at
	// most 8.
	Workers int
	// Skip, if set, leaves out what it says yes to, with all that is below it. path
	// is absolute. It is called from several goroutines.
	Skip func(path string, dir bool) bool
}

// WalkStats says what a walk saw and left out.
type WalkStats struct {
	// Files is how many files were visited.
	Files int
	// Links is how many symbolic links were not followed.
	Links int
	// Unreadable is how many folders could not be read.
	Unreadable int
	// Cut reports that a bound ended the walk before all was seen.
	Cut bool
}

// Found is one regular file of a walk. It is valid only during the visit.
type Found struct {
	// Rel is the path below the place where the walk began; Name its last component.
	Rel, Name string
	dir       int
}

// Stat returns what the file is.
func (f Found) Stat() (Info, error) { return statAt(f.dir, f.Name) }

// Open opens the file for reading. The caller closes it.
func (f Found) Open() (*os.File, Info, error) { return openRegular(f.dir, f.Name) }

// Walk calls visit for every regular file below the directory at place, in no
// order and from several goroutines at once. Symbolic links are not followed. It
// ends when all is seen, when ctx ends, at a bound, or with the first error of
// visit, which it returns unless it is ErrStop.
func Walk(ctx context.Context, place policy.Place, o WalkOptions, visit func(Found) error) (WalkStats, error) {
	t, err := open("list", place)
	if err != nil {
		return WalkStats{}, err
	}
	defer t.close()
	top, err := openBeneath(t.dir, t.rel, openPath|unix.O_DIRECTORY, 0)
	if err != nil {
		return WalkStats{}, t.fail("", err)
	}
	defer unix.Close(top)
	if err := ctx.Err(); err != nil {
		return WalkStats{}, err // AfterFunc, in a goroutine of its own, may come after a small tree is done
	}
	if o.MaxFiles == 0 {
		o.MaxFiles = DefaultMaxFiles
	}
	w := &walker{ctx: ctx, o: o, top: top, path: place.Path, visit: visit}
	w.wake.L = &w.mu
	var start *level
	if !o.NoIgnore {
		start = levelsAbove(place.Path, o.GlobalIgnore)
	}
	w.stack = []folder{{level: start}}
	w.run()
	stats := WalkStats{Files: int(min(w.files.Load(), int64(o.MaxFiles))), Links: int(w.links.Load()),
		Unreadable: int(w.unreadable.Load()), Cut: w.cut.Load()}
	w.mu.Lock() // the end of ctx may be told at any moment
	defer w.mu.Unlock()
	if errors.Is(w.err, ErrStop) {
		return stats, nil
	}
	return stats, w.err
}

type folder struct {
	rel   string // "" is the top
	depth int
	level *level
}

type walker struct {
	ctx   context.Context
	o     WalkOptions
	top   int
	path  string
	visit func(Found) error

	files, links, unreadable atomic.Int64
	cut, stopped             atomic.Bool

	mu     sync.Mutex // guards what follows
	wake   sync.Cond
	stack  []folder // newest last: a deep tree then needs little memory
	active int
	err    error
}

func (w *walker) run() {
	workers := w.o.Workers
	if workers <= 0 {
		workers = min(runtime.GOMAXPROCS(0), maxWorkers)
	}
	stop := context.AfterFunc(w.ctx, func() { w.fail(w.ctx.Err()) })
	defer stop()
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for {
				f, ok := w.next()
				if !ok {
					return
				}
				w.read(f)
				w.finished()
			}
		})
	}
	wg.Wait()
}

// next returns a folder to read; false when there is none and none can come.
func (w *walker) next() (folder, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.stack) == 0 && w.active > 0 && w.err == nil {
		w.wake.Wait()
	}
	if w.err != nil || len(w.stack) == 0 {
		return folder{}, false
	}
	f := w.stack[len(w.stack)-1]
	w.stack = w.stack[:len(w.stack)-1]
	w.active++
	return f, true
}

func (w *walker) push(list []folder) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stack = append(w.stack, list...)
	w.wake.Broadcast()
}

func (w *walker) finished() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.active--; w.active == 0 {
		w.wake.Broadcast()
	}
}

func (w *walker) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
	w.stopped.Store(true)
	w.wake.Broadcast()
}

// read visits the files of one folder and queues the folders in it.
func (w *walker) read(f folder) {
	fd, err := openBeneath(w.top, f.rel, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		w.unreadable.Add(1)
		return
	}
	dir := os.NewFile(uintptr(fd), filepath.Join(w.path, f.rel))
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	if err != nil {
		w.unreadable.Add(1)
	}
	if !w.o.NoIgnore {
		f.level = deeper(f.level, f.rel, fd, entries)
	}
	var folders []folder
	for _, e := range entries {
		if w.stopped.Load() {
			return
		}
		rel := e.Name()
		if f.rel != "" {
			rel = f.rel + "/" + e.Name()
		}
		switch w.sort(f, rel, e) {
		case Directory:
			if f.depth+1 > maxDepth {
				w.cut.Store(true)
				continue
			}
			folders = append(folders, folder{rel, f.depth + 1, f.level})
		case Regular:
			if w.files.Add(1) > int64(w.o.MaxFiles) {
				w.cut.Store(true)
				w.fail(ErrStop)
				return
			}
			if err := w.visit(Found{Rel: rel, Name: e.Name(), dir: fd}); err != nil {
				w.fail(err)
				return
			}
		}
	}
	if len(folders) > 0 {
		w.push(folders)
	}
}

// sort says what to do with an entry: visit it as Regular, enter it as Directory,
// or leave it out as anything else.
func (w *walker) sort(f folder, rel string, e fs.DirEntry) Kind {
	name, kind := e.Name(), Other
	switch {
	case e.Type()&fs.ModeSymlink != 0:
		w.links.Add(1)
		return Other
	case e.IsDir():
		kind = Directory
	case e.Type().IsRegular():
		kind = Regular
	default:
		return Other
	}
	if name[0] == '.' && (!w.o.Hidden || name == ".git") {
		return Other
	}
	if f.level.ignores(rel, name, kind == Directory) {
		return Other
	}
	if w.o.Skip != nil && w.o.Skip(w.path+"/"+rel, kind == Directory) {
		return Other
	}
	return kind
}
