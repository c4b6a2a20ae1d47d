package install

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/abhed/abhed/internal/confedit"
	"github.com/abhed/abhed/internal/strictjson"
)

// manifest is what an installation remembers, so that it can be taken back.
type manifest struct {
	Version int          `json:"version"`
	Host    string       `json:"host"`
	Scope   string       `json:"scope"`
	Project string       `json:"project,omitempty"`
	Files   []fileRecord `json:"files"`
	// Seen is missing in the manifest of an older ahp.
	Seen *Seen `json:"seen,omitempty"`
}

// fileRecord is one file as it was before, and as it was left.
type fileRecord struct {
	Path    string `json:"path"`
	Existed bool   `json:"existed"`
	// Before names the copy of the bytes before, in the manifest's folder.
	Before string `json:"before,omitempty"`
	// BeforeHash and AfterHash are of the bytes before and after.
	BeforeHash string           `json:"beforeHash"`
	AfterHash  string           `json:"afterHash"`
	Traces     []confedit.Trace `json:"traces,omitempty"`
	// Made are the folders that were made for the file, the innermost last.
	Made []string `json:"made,omitempty"`

	// before are the bytes to be copied, nil if the copy is there already.
	before []byte
}

const manifestName = "manifest.json"

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// recordDir is the folder of an installation's manifest.
func recordDir(host string, o Options) string {
	name := host + "-" + string(o.Scope)
	if o.Scope == "project" {
		name += "-" + hash([]byte(o.Roots.Project))[:16]
	}
	return filepath.Join(o.State, "backup", name)
}

// readManifest reads what an earlier installation remembers; nil if there was none.
func readManifest(dir string) (*manifest, error) {
	s, err := confedit.Read(filepath.Join(dir, manifestName))
	if err != nil || !s.Exists {
		return nil, err
	}
	var m manifest
	if err := strictjson.Unmarshal(s.Data, &m, strictjson.Options{RejectUnknown: true}); err != nil {
		return nil, fmt.Errorf("%s: %w; move the folder away to go on without the backup", s.Path, err)
	}
	if m.Version != 1 {
		return nil, fmt.Errorf("%s: version %d, expected 1: a newer ahp wrote it", s.Path, m.Version)
	}
	return &m, nil
}

func (m *manifest) find(path string) *fileRecord {
	if m == nil {
		return nil
	}
	for i := range m.Files {
		if m.Files[i].Path == path {
			return &m.Files[i]
		}
	}
	return nil
}

// original returns the bytes before, checked.
func (r *fileRecord) original(dir string) ([]byte, error) {
	if !r.Existed {
		return nil, nil
	}
	s, err := confedit.Read(filepath.Join(dir, r.Before))
	if err != nil {
		return nil, err
	}
	if !s.Exists || hash(s.Data) != r.BeforeHash {
		return nil, fmt.Errorf("%s: the backup is missing or was changed", s.Path)
	}
	return s.Data, nil
}

// write puts the manifest and its copies on disk, before anything else is written.
func (m *manifest) write(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for i := range m.Files {
		r := &m.Files[i]
		if r.before == nil || !r.Existed {
			continue
		}
		// The name follows the content: a manifest that is there stays true until
		// the new one takes its place.
		r.Before = r.BeforeHash[:32]
		if err := replace(filepath.Join(dir, r.Before), r.before); err != nil {
			return err
		}
	}
	data, err := strictjson.Marshal(m)
	if err != nil {
		return err
	}
	return replace(filepath.Join(dir, manifestName), append(data, '\n'))
}

// replace writes a file of ours.
func replace(path string, data []byte) error {
	s, err := confedit.Read(path)
	if err != nil {
		return err
	}
	s.Mode = 0o600
	return confedit.Write(s, data)
}

// lockWait bounds the wait for another ahp.
const lockWait = 10 * time.Second

// Locked runs do while no other ahp installs or uninstalls in this account.
func Locked(state string, do func() error) error {
	dir := filepath.Join(state, "backup")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	for end := time.Now().Add(lockWait); ; time.Sleep(20 * time.Millisecond) {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return do()
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) || time.Now().After(end) {
			return fmt.Errorf("%s: another ahp install or uninstall is under way: %w", f.Name(), err)
		}
	}
}

// makeParents makes a file's folders and returns those that were missing.
func makeParents(path string) ([]string, error) {
	var missing []string
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		_, err := os.Stat(dir)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		missing = append([]string{dir}, missing...)
	}
	return missing, os.MkdirAll(filepath.Dir(path), 0o755)
}
