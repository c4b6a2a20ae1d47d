package app

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/abhed/abhed/internal/chain"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/session"
)

// openStore opens the records of this installation.
func openStore(sys System) (*session.Store, error) {
	dir := sys.stateDir()
	if dir == "" {
		return nil, errors.New("there is no place for records: neither XDG_STATE_HOME nor HOME is an absolute path")
	}
	return session.OpenStore(dir, session.Options{})
}

// findRecord returns the store and the file that name stands for.
func findRecord(sys System, name string) (*session.Store, string, error) {
	store, err := openStore(sys)
	if err != nil {
		return nil, "", err
	}
	file, err := store.Find(name)
	return store, file, err
}

// recordFailure prints why a record could not be had, and returns the exit code.
func recordFailure(sys System, err error) int {
	var missing *session.NotFoundError
	if errors.As(err, &missing) {
		return sys.fail(ExitUsage, err)
	}
	return sys.fail(ExitFailure, err)
}

// listed is one session in the JSON form of the list.
type listed struct {
	ID        string    `json:"id"`
	Path      string    `json:"path"`
	Workspace string    `json:"workspace"`
	Model     string    `json:"model"`
	Title     string    `json:"title"`
	Created   time.Time `json:"created"`
	Modified  time.Time `json:"modified"`
	Size      int64     `json:"size"`
}

// RecordShow prints what happened in a session, for a reader or as it is recorded.
func RecordShow(sys System, name string, asRecorded bool) int {
	_, file, err := findRecord(sys, name)
	if err != nil {
		return recordFailure(sys, err)
	}
	f, err := os.Open(file)
	if err != nil {
		return sys.fail(ExitFailure, err)
	}
	defer f.Close()
	out := bufio.NewWriter(sys.Stdout)
	defer out.Flush()
	st := newStory(out)
	st.full = true
	lines := chain.NewReader(f)
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return ExitOK
		}
		if err != nil {
			return sys.fail(ExitFailure, err)
		}
		if asRecorded {
			fmt.Fprintf(out, "%s\n", line.Data)
			continue
		}
		e, err := event.Decode(line.Data)
		if err != nil {
			fmt.Fprintf(out, "line %d can't be read: %v\n", line.Number, err)
			continue
		}
		st.tell(e)
	}
}

// RecordVerify checks chain, sequence and signatures of a session. It exits with
// 1 if anything is wrong.
func RecordVerify(sys System, name string) int {
	store, file, err := findRecord(sys, name)
	if err != nil {
		return recordFailure(sys, err)
	}
	rep, err := session.Verify(file, store.Key().Public())
	if err != nil {
		return sys.fail(ExitFailure, err)
	}
	printReport(sys.Stdout, file, rep)
	if !rep.OK {
		return ExitNegative
	}
	return ExitOK
}

// maxProblems is how many problems of a record are printed.
const maxProblems = 5

func printReport(w io.Writer, file string, rep *session.Report) {
	fmt.Fprintf(w, "record    %s\nevents    %d, head %s\n", file, rep.Events, rep.Head.Hash)
	if rep.KeyID != "" {
		fmt.Fprintf(w, "signed    up to event %d by key %s\n", rep.SignedHead.Seq, rep.KeyID)
	}
	if rep.UnsignedTail > 0 {
		fmt.Fprintf(w, "unsigned  the last %d events: whoever can write the file could have added or cut such events\n", rep.UnsignedTail)
	}
	for i, p := range rep.Problems {
		if i == maxProblems {
			fmt.Fprintf(w, "          … and %d more, which may follow from these\n", len(rep.Problems)-i)
			break
		}
		fmt.Fprintf(w, "problem   %s\n", p)
	}
	if rep.OK {
		fmt.Fprintln(w, "verified  chain, sequence and signatures hold")
	} else {
		fmt.Fprintf(w, "BROKEN    %d lines are wrong\n", len(rep.Problems))
	}
}
