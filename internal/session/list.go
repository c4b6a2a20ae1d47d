package session

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/abhed/abhed/internal/event"
)

// Info describes a stored session.
type Info struct {
	ID   string
	Path string
	// Root is the workspace, Model the model at the start, Title the first line
	// of the person's first message; "" where the record's start doesn't say.
	Root  string
	Model string
	Title string
	// Created is the time of the first event; zero if it can't be read.
	Created  time.Time
	Modified time.Time
	Size     int64
}

// NotFoundError says that no session has the name, or several do.
type NotFoundError struct {
	Name    string
	Matches []string // the ids, if there are several
}

// Error names the candidates.
func (e *NotFoundError) Error() string {
	if len(e.Matches) == 0 {
		return fmt.Sprintf("there is no session %q: give its id, the start of it, or the path of its file; `abhed record list` lists them", e.Name)
	}
	shown := e.Matches[:min(len(e.Matches), 10)]
	return fmt.Sprintf("%q is the start of %d session ids: give more of it (%s)", e.Name, len(e.Matches), strings.Join(shown, ", "))
}

// List returns the stored sessions, the last changed first. What can't be read of
// a record's start is left empty.
func (s *Store) List() ([]Info, error) { return list(filepath.Join(quoteMeta(s.sessions()), "*")) }

// ListWorkspace returns the sessions of the workspace at root, as List.
func (s *Store) ListWorkspace(root string) ([]Info, error) {
	dir, err := s.workspaceDir(root)
	if err != nil {
		return nil, err
	}
	return list(quoteMeta(dir))
}

// quoteMeta makes a path a pattern that matches it alone.
func quoteMeta(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

func list(dirs string) ([]Info, error) {
	paths, err := filepath.Glob(filepath.Join(dirs, "*"+fileSuffix))
	if err != nil {
		return nil, fmt.Errorf("the sessions can't be listed: %w", err)
	}
	infos := make([]Info, 0, len(paths))
	for _, p := range paths {
		fi, err := os.Stat(p)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("the sessions can't be listed: %w", err)
		}
		info := Info{ID: idOf(p), Path: p, Modified: fi.ModTime(), Size: fi.Size()}
		info.readStart()
		infos = append(infos, info)
	}
	sort.SliceStable(infos, func(i, j int) bool { return infos[i].Modified.After(infos[j].Modified) })
	return infos, nil
}

func idOf(path string) string { return strings.TrimSuffix(filepath.Base(path), fileSuffix) }

// readStart fills in what the first events say; it reads 256 KiB at most.
func (i *Info) readStart() {
	f, err := os.Open(i.Path)
	if err != nil {
		return
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 0, 16<<10), 128<<10)
	for read := 0; read < 256<<10 && lines.Scan(); read += len(lines.Bytes()) {
		e, err := event.Decode(lines.Bytes())
		if err != nil {
			continue
		}
		if i.Created.IsZero() {
			i.Created = e.Time
		}
		switch p := e.Payload.(type) {
		case *event.SessionStarted:
			i.Root, i.Model = p.Workspace, p.Model
		case *event.UserMessage:
			i.Title, _, _ = strings.Cut(strings.TrimSpace(p.Text), "\n")
			return
		}
	}
}

// Find returns the file of the session that name stands for: an id, the start of
// one that no other shares, or the path of a record. It fails with
// *NotFoundError.
func (s *Store) Find(name string) (string, error) {
	if strings.ContainsRune(name, filepath.Separator) || strings.HasSuffix(name, fileSuffix) {
		if fi, err := os.Stat(name); err != nil || !fi.Mode().IsRegular() || !strings.HasSuffix(name, fileSuffix) {
			return "", &NotFoundError{Name: name}
		}
		path, err := filepath.Abs(name)
		if err != nil {
			return "", fmt.Errorf("the record can't be located: %w", err)
		}
		return path, nil
	}
	if !validID(name) {
		return "", &NotFoundError{Name: name}
	}
	paths, err := filepath.Glob(filepath.Join(quoteMeta(s.sessions()), "*", name+"*"+fileSuffix))
	if err != nil {
		return "", fmt.Errorf("the sessions can't be listed: %w", err)
	}
	var ids []string
	for _, p := range paths {
		if idOf(p) == name {
			return p, nil
		}
		ids = append(ids, idOf(p))
	}
	if len(paths) == 1 {
		return paths[0], nil
	}
	return "", &NotFoundError{Name: name, Matches: ids}
}
