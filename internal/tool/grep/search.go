package grep

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool"
	"github.com/abhed/abhed/internal/workspace"
)

// maxKept bounds the lines that are held before the answer is made, in bytes.
const maxKept = 32 << 20

// search is one call.
type search struct {
	tool    *Tool
	args    args
	matcher *matcher
	glob    *workspace.Glob
	place   policy.Place
	workdir string
	limit   int

	buffers sync.Pool // of *[]byte, for the content of files
	kept    atomic.Int64
	tooBig  atomic.Int64
	binary  atomic.Int64

	mu    sync.Mutex
	files []fileHits
	stats workspace.WalkStats
}

// fileHits is what was found in one file.
type fileHits struct {
	path  string // absolute
	mod   time.Time
	count int    // matching lines, all of them
	lines []line // the first matches with their context, at most limit matches
}

type line struct {
	number int // from 1
	text   string
	match  bool
}

func (s *search) run(ctx context.Context) error {
	info, err := workspace.Stat(s.place)
	if err != nil {
		return err
	}
	switch info.Kind {
	case workspace.Missing:
		return fmt.Errorf("there is no file or folder %s", cmp.Or(s.args.Path, "."))
	case workspace.Directory:
		return s.folder(ctx)
	}
	f, info, err := workspace.Open(s.place)
	if err != nil {
		return err
	}
	defer f.Close()
	s.stats.Files = 1
	return s.file(ctx, f, info, s.place.Path)
}

func (s *search) folder(ctx context.Context) error {
	top := strings.TrimSuffix(s.place.Path, "/") + "/"
	stats, err := workspace.Walk(ctx, s.place, workspace.WalkOptions{
		Hidden: s.args.Ignored || (s.glob != nil && s.glob.Hidden()), NoIgnore: s.args.Ignored,
		GlobalIgnore: s.tool.o.GlobalIgnore, MaxFiles: s.tool.o.MaxFiles,
		Skip: func(path string, dir bool) bool {
			if dir && s.glob != nil && !s.glob.MayContain(strings.TrimPrefix(path, top)) {
				return true
			}
			return s.tool.o.Denied != nil && s.tool.o.Denied(path)
		},
	}, func(f workspace.Found) error {
		if s.glob != nil && !s.glob.Match(f.Rel) {
			return nil
		}
		file, info, err := f.Open()
		if err != nil {
			return nil // it has just gone, or may not be read
		}
		defer file.Close()
		return s.file(ctx, file, info, top+f.Rel)
	})
	s.stats = stats
	return err
}

// file searches one file. An error ends the search.
func (s *search) file(ctx context.Context, f *os.File, info workspace.Info, path string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if info.Size > s.maxSize() {
		s.tooBig.Add(1)
		return nil
	}
	buf, _ := s.buffers.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	defer s.buffers.Put(buf)
	data, err := readInto(f, buf, int(info.Size))
	if err != nil {
		return nil
	}
	if data = s.text(data); data == nil {
		return nil
	}
	hits := fileHits{path: path, mod: info.ModTime}
	var spans []span
	s.matcher.find(data, func() bool { return ctx.Err() == nil }, func(m span) bool {
		hits.count += m.last - m.first + 1
		if len(spans) < s.limit {
			spans = append(spans, m)
		}
		return s.args.Output != "files"
	})
	if hits.count == 0 {
		return nil
	}
	if cmp.Or(s.args.Output, "content") == "content" && s.kept.Load() < maxKept {
		hits.lines = s.lines(data, spans)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = append(s.files, hits)
	return nil
}

// maxSize returns the size of the largest file that is searched.
func (s *search) maxSize() int64 {
	if s.args.Multiline {
		return maxAcross
	}
	return workspace.MaxFile
}

// readInto reads the whole of f into the buffer, which grows as needed.
func readInto(f *os.File, buf *[]byte, size int) ([]byte, error) {
	if cap(*buf) < size+1 {
		*buf = make([]byte, size+size/4+4096)
	}
	b := (*buf)[:cap(*buf)]
	n := 0
	for n < len(b) {
		m, err := f.Read(b[n:])
		n += m
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return b[:n], nil
}

// text returns the file as lines that end in LF, or nil if it is no text.
func (s *search) text(data []byte) []byte {
	if len(data) >= 2 && (data[0] == 0xFF && data[1] == 0xFE || data[0] == 0xFE && data[1] == 0xFF) {
		t, err := workspace.Decode(data)
		if err != nil {
			s.binary.Add(1)
			return nil
		}
		data = []byte(t.Body)
	}
	if bytes.IndexByte(data, 0) >= 0 {
		s.binary.Add(1)
		return nil
	}
	data = bytes.TrimPrefix(data, []byte("\xEF\xBB\xBF"))
	if bytes.Contains(data, []byte("\r\n")) {
		data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	}
	return data
}

// lines takes the lines of the matches, with context, out of the text.
func (s *search) lines(data []byte, spans []span) []line {
	var out []line
	next, at := 0, 0 // the first line that wasn't taken, and where it begins
	for i, m := range spans {
		from, to := max(next, m.first-s.args.Context), m.last+s.args.Context
		// Context ends where the next match begins, so that its lines are marked.
		if i+1 < len(spans) {
			to = min(to, spans[i+1].first-1)
		}
		for ; next < from && at < len(data); next++ {
			at = after(data, at)
		}
		for ; next <= to && at < len(data); next++ {
			end := after(data, at)
			out = append(out, line{next + 1, s.clip(data[at:end]), next >= m.first && next <= m.last})
			at = end
		}
	}
	return out
}

// after returns where the line after the one at a position begins.
func after(data []byte, at int) int {
	if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(data)
}

// clip returns a line as it is shown: around its match if it is long.
func (s *search) clip(raw []byte) string {
	raw = bytes.TrimSuffix(raw, []byte{'\n'})
	limit := s.tool.o.MaxLine
	text := ""
	if len(raw) <= limit {
		text = tool.Clean(string(raw))
	} else {
		from := 0
		if loc := s.matcher.re.FindIndex(raw); loc != nil && loc[0] > limit/2 {
			from = min(loc[0]-limit/4, len(raw)-limit)
		}
		text = tool.Clean(strings.ToValidUTF8(string(raw[from:from+limit]), ""))
		if from > 0 {
			text = "…" + text
		}
		text += fmt.Sprintf("… (%d bytes)", len(raw))
	}
	s.kept.Add(int64(len(text)) + 40)
	return text
}

// answer puts the found in order and in words.
func (s *search) answer() string {
	slices.SortFunc(s.files, func(a, b fileHits) int {
		return cmp.Or(b.mod.Compare(a.mod), strings.Compare(a.path, b.path))
	})
	var b strings.Builder
	shown, files := s.show(&b)
	total := 0
	for _, f := range s.files {
		total += f.count
	}
	switch {
	case len(s.files) == 0:
		fmt.Fprintf(&b, "(no match for %q in %d files", s.args.Pattern, s.stats.Files)
		if !s.args.Ignored && s.stats.Files != 1 {
			b.WriteString("; ignored and hidden ones were not searched")
		}
		b.WriteString(")\n")
	case s.args.Output == "files" && files < len(s.files):
		fmt.Fprintf(&b, "(and %d more files)\n", len(s.files)-files)
	case s.args.Output == "count":
		fmt.Fprintf(&b, "(%d lines in %d files%s)\n", total, len(s.files), more(len(s.files)-files))
	case s.args.Output != "files" && shown < total:
		fmt.Fprintf(&b, "(%d of %d matching lines shown, in %d of %d files; narrow the search or raise limit)\n", shown, total, files, len(s.files))
	}
	if n := s.binary.Load(); n > 0 && (len(s.files) == 0 || s.stats.Files == 1) {
		fmt.Fprintf(&b, "(%d binary files were not searched)\n", n)
	}
	if n := s.tooBig.Load(); n > 0 {
		fmt.Fprintf(&b, "(%d files of more than %d MiB were not searched)\n", n, s.maxSize()>>20)
	}
	if s.stats.Cut {
		fmt.Fprintf(&b, "(the search ended after %d files; search a smaller folder)\n", s.stats.Files)
	}
	if s.stats.Unreadable > 0 {
		fmt.Fprintf(&b, "(%d folders could not be read)\n", s.stats.Unreadable)
	}
	return b.String()
}

func more(files int) string {
	if files <= 0 {
		return ""
	}
	return fmt.Sprintf(", %d of them not listed", files)
}

// show writes what was found up to the bounds, and returns how many matching lines
// and files it wrote.
func (s *search) show(b *strings.Builder) (lines, files int) {
	for _, f := range s.files {
		name := tool.Name(workspace.Display(filepath.Clean(f.path), s.workdir))
		if b.Len()+len(name) > s.tool.o.MaxBytes {
			return lines, files
		}
		switch s.args.Output {
		case "files":
			fmt.Fprintln(b, name)
		case "count":
			fmt.Fprintf(b, "%s: %d\n", name, f.count)
		default:
			n, full := s.showLines(b, name, f, s.limit-lines)
			lines += n
			if n > 0 {
				files++
			}
			if full {
				return lines, files
			}
			continue
		}
		if files++; files == s.limit {
			return lines, files
		}
	}
	return lines, files
}

func (s *search) showLines(b *strings.Builder, name string, f fileHits, limit int) (shown int, full bool) {
	if limit <= 0 || len(f.lines) == 0 {
		return 0, limit <= 0
	}
	fmt.Fprintf(b, "%s\n", name)
	last := f.lines[0].number - 1
	for _, l := range f.lines {
		if b.Len()+len(l.text) > s.tool.o.MaxBytes || (l.match && shown == limit) {
			return shown, true
		}
		if l.number > last+1 && s.args.Context > 0 {
			b.WriteString("--\n")
		}
		last = l.number
		sep := "-"
		if l.match {
			sep = ":"
			shown++
		}
		fmt.Fprintf(b, "%d%s%s\n", l.number, sep, l.text)
	}
	return shown, false
}
