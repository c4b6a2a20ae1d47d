package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/abhed/abhed/internal/confedit"
	"github.com/abhed/abhed/internal/hooklog"
	"github.com/abhed/abhed/internal/strictjson"
)

// anchor is the end of the log that a run has seen: a chain alone doesn't tell that lines
// were cut off behind it.
type anchor struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

func (d *doctor) anchorFile() string { return filepath.Join(d.o.State, "doctor.json") }

// held looks whether the log still holds the line that was its end at the last run, and
// remembers the end of now. It says what is wrong.
func (d *doctor) held() string {
	dir := hooklog.LogDir(d.o.State)
	s, err := confedit.Read(d.anchorFile())
	if err != nil {
		return err.Error()
	}
	var a anchor
	if s.Exists && strictjson.Unmarshal(s.Data, &a, strictjson.Options{}) == nil && a.Hash != "" && !d.has(dir, a) {
		// It is told of until a person says that it is known.
		return fmt.Sprintf("decision %d, which was the last at an earlier run of the doctor, is no longer in the log: lines were cut off, or the log is another; once that is known, remove %s", a.Seq, s.Path)
	}
	last, err := hooklog.Last(dir, 1, func(*hooklog.Entry) bool { return true })
	if err != nil || len(last) == 0 {
		return "" // what can't be read is told of elsewhere
	}
	data, err := strictjson.Marshal(anchor{last[0].Seq, last[0].Hash})
	if err == nil {
		s.Mode = 0o600
		err = confedit.Write(s, append(data, '\n'))
	}
	if err != nil && !errors.Is(err, confedit.ErrChanged) { // another doctor was faster
		return "where the log ends can't be remembered: " + err.Error()
	}
	return ""
}

// has reports whether the log holds a line, or may have put it away with the oldest ones.
func (d *doctor) has(dir string, a anchor) bool {
	found, err := hooklog.Last(dir, 1, func(e *hooklog.Entry) bool { return e.Hash == a.Hash })
	if len(found) > 0 {
		return true
	}
	var damaged *hooklog.DamagedError
	if err != nil && !errors.As(err, &damaged) {
		return true // it can't be read, which is told of elsewhere
	}
	_, err = os.Lstat(filepath.Join(dir, hooklog.File+".4")) // as many are kept
	return err == nil || !errors.Is(err, fs.ErrNotExist)
}
