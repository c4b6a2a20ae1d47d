package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/proc"
)

// The names of the environment variables that the command under test is given.
const (
	varRegistration = "AHP_CONFORM_REGISTRATION"
	varCalls        = "AHP_CONFORM_CALLS"
	varDir          = "AHP_CONFORM_DIR"
	varResults      = "AHP_CONFORM_RESULTS"
	varToken        = "AHP_CONFORM_TOKEN"
)

// play is one run of the command under test: a registration, the calls that it is
// to make, and what the suite answers as its backends.
type play struct {
	name     string
	calls    []call
	backends []actor
	// doc changes the registration before it is written; nil leaves it.
	doc edit
	// noToken leaves the token out of the command's environment.
	noToken bool
	// limit bounds the run beyond the usual time.
	limit time.Duration
}

// call is one tool call.
type call struct {
	// command is a shell command in which {} stands for the file that it makes.
	command string
	// input, if set, is the whole input; {} in it is the file.
	input string
}

// touch is a call that makes its file and nothing else.
func touch() call { return call{command: "touch '{}'"} }

// actor is one backend that the suite plays.
type actor struct {
	// subs are the subscriptions as they stand in the registration.
	subs []any
	// bearer has the registration name a token, over HTTP.
	bearer bool
	// answer says how the backend reacts to a message; nil agrees to everything.
	answer func(s *stage, a *arrival) reaction
	// deaf keeps a process from reading: it ends with status 3, or stays where stays
	// is set.
	deaf, stays bool
	// transport, if set, is the transport in the registration.
	transport object
}

// played is what came of a play.
type played struct {
	play     *play
	dir      string
	stage    *stage
	exit     proc.Exit
	killed   bool // it didn't end in time
	began    time.Time
	took     time.Duration
	output   string // what it wrote to standard output, standard error and its results
	ran      []bool // by call: its file is there
	files    map[string]bool
	lines    []Line
	arrivals []*arrival
	strays   []*arrival
	names    [][]string // of the environment, by process
	// endLine and filesLine tell how the command ended and which files are there,
	// reasonLine where it wrote the reason of a denial; 0 if it didn't.
	endLine, filesLine, reasonLine int
	err                            error // a fault of the suite
}

// did reports whether a file of a call is there, such as "-other" for the variant
// that a backend makes of it.
func (r *played) did(call int, variant string) bool { return r.files[marker(call)+variant] }

// refused reports whether the command refused to begin: it asked nobody, ran
// nothing and said so by its exit code.
func (r *played) refused() bool {
	return !r.killed && (r.exit.Code != 0 || r.exit.Signal != 0) && len(r.arrivals) == 0 && len(r.files) == 0
}

// clean reports whether the command ended by itself and well.
func (r *played) clean() bool { return !r.killed && r.exit == proc.Exit{} }

// marker is the name of the file that a call makes.
func marker(call int) string { return fmt.Sprintf("call%03d", call) }

// perform runs the command under test once.
func (e *harnessEnv) perform(ctx context.Context, p *play) *played {
	r := &played{play: p, files: map[string]bool{}}
	root, err := os.MkdirTemp("", "ahp-conform-")
	if err != nil {
		r.err = err
		return r
	}
	defer os.RemoveAll(root)
	// The command may leave anything in its folder, so that what the suite writes has
	// one of its own.
	r.dir = filepath.Join(root, "work")
	if r.err = os.Mkdir(r.dir, 0o700); r.err != nil {
		return r
	}
	s, err := e.open(ctx, p, r.dir)
	if err != nil {
		r.err = err
		return r
	}
	defer s.close()
	r.stage = s
	spec, err := e.prepare(p, s, root, r.dir)
	if err != nil {
		r.err = err
		return r
	}
	if err := e.runCommand(ctx, r, spec); err != nil {
		r.err = err
		return r
	}
	s.settle(ctx)
	s.close()
	r.look(root)
	s.seen(r)
	return r
}

// look notes which files are there, and what the command said.
func (r *played) look(root string) {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		r.err = err
		return
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "call") {
			r.files[entry.Name()] = true
		}
	}
	r.ran = make([]bool, len(r.play.calls))
	for i := range r.ran {
		r.ran[i] = r.files[marker(i)]
	}
	results, err := os.ReadFile(filepath.Join(root, "results.jsonl"))
	if err == nil {
		r.output += string(results)
	} else if !errors.Is(err, os.ErrNotExist) {
		r.err = err
	}
	there := "of no call"
	if len(r.files) > 0 {
		there = strings.Join(slices.Sorted(maps.Keys(r.files)), " ")
	}
	r.filesLine = r.stage.log.add(0, Happened, []byte("files that are there: "+there))
	if line := lineWith(r.output, denyReason); line != "" {
		r.reasonLine = r.stage.log.add(0, Happened, []byte("it wrote: "+line))
	}
}

// prepare writes the two files and returns how the command is started.
func (e *harnessEnv) prepare(p *play, s *stage, root, dir string) (proc.Spec, error) {
	doc := s.registration()
	if p.doc != nil {
		p.doc(doc)
	}
	raw, err := encode(doc)
	if err != nil {
		return proc.Spec{}, err
	}
	var lines []byte
	for i, c := range p.calls {
		line, err := encode(object{"name": "bash", "input": c.inputOf(filepath.Join(dir, marker(i)))})
		if err != nil {
			return proc.Spec{}, err
		}
		lines = append(append(lines, line...), '\n')
	}
	registration, calls := filepath.Join(root, "registration.json"), filepath.Join(root, "calls.jsonl")
	if err := errors.Join(os.WriteFile(registration, raw, 0o600), os.WriteFile(calls, lines, 0o600)); err != nil {
		return proc.Spec{}, err
	}
	env := append([]string{
		varRegistration + "=" + registration, varCalls + "=" + calls, varDir + "=" + dir, varResults + "=" + filepath.Join(root, "results.jsonl"),
	}, e.target.Env...)
	if !p.noToken {
		env = append(env, varToken+"="+e.token)
	}
	fill := strings.NewReplacer("{registration}", registration, "{calls}", calls, "{dir}", dir)
	args := make([]string, 0, len(e.target.Command))
	for _, a := range e.target.Command[1:] {
		args = append(args, fill.Replace(a))
	}
	s.log.add(0, Happened, []byte("registration "+string(raw)))
	for line := range strings.Lines(string(lines)) {
		s.log.add(0, Happened, []byte("call "+strings.TrimSpace(line)))
	}
	return proc.Spec{
		Path: e.program, Args: args, Dir: dir, Env: proc.Environ(env), Grace: e.opts.Grace, NoInput: true, StderrTail: 64 << 10,
	}, nil
}

// inputOf returns the input of a call whose file is at path.
func (c *call) inputOf(path string) any {
	if c.input != "" {
		return ahp.Raw(strings.ReplaceAll(c.input, "{}", path))
	}
	return object{"command": strings.ReplaceAll(c.command, "{}", path)}
}

// runCommand runs the command to its end, or kills it when its time is over.
func (e *harnessEnv) runCommand(ctx context.Context, r *played, spec proc.Spec) error {
	limit := e.opts.Limit + r.play.limit
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r.began = time.Now()
	child, err := proc.Start(spec)
	if err != nil {
		return &PeerError{Peer: e.peer(), Err: err}
	}
	// What the command left behind may hold its output open.
	reading, enough := context.WithCancel(bounded)
	defer enough()
	go func() {
		select {
		case <-child.Done():
			time.AfterFunc(drainTime, enough)
		case <-reading.Done():
		}
	}()
	var out strings.Builder
	for {
		data, err := child.Read(reading)
		out.Write(data[:min(len(data), max(0, maxOutput-out.Len()))])
		if err != nil {
			break
		}
	}
	select {
	case <-child.Done():
	case <-bounded.Done():
		r.killed = true
	}
	r.took = time.Since(r.began)
	r.exit = child.Kill()
	r.output = out.String() + child.StderrTail()
	e.keepStderr(child.StderrTail())
	how := r.exit.String()
	if r.killed {
		how = fmt.Sprintf("killed: it had not ended after %s", limit)
	}
	r.endLine = r.stage.log.add(0, Happened, []byte("the command ended: "+how))
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	return nil
}

// maxOutput bounds what is kept of a command's output.
const maxOutput = 1 << 20
