package ahpconfig_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/abhed/abhed/internal/ahpconfig"
)

// registration returns a document with backends of these ids.
func registration(ids ...string) string {
	var hooks []string
	for _, id := range ids {
		hooks = append(hooks, `{"id":"`+id+`","transport":{"type":"stdio","command":"x","lifecycle":"persistent"},`+
			`"subscriptions":[{"events":["tool.after"],"mode":"observe","content":{"default":"body"}}]}`)
	}
	return "{\"protocolVersion\":\"draft\",\"hooks\":[\n" + strings.Join(hooks, ",\n") + "]}"
}

// machine is a folder with the files of every place.
func machine(t *testing.T, files map[string]string) (string, ahpconfig.Options) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil { // whatever the umask
		t.Fatal(err)
	}
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, ahpconfig.Options{Home: filepath.Join(dir, "home"), Dir: filepath.Join(dir, "project"), Managed: filepath.Join(dir, "managed.json")}
}

const (
	userFile    = "home/.config/ahp/registration.json"
	projectFile = "project/.ahp/registration.json"
)

func TestLoad(t *testing.T) {
	all := map[string]string{"managed.json": registration("com.example.m"), userFile: registration("com.example.u"), projectFile: registration("com.example.p"),
		"given.json": registration("com.example.g", "com.example.h")}
	without := func(names ...string) map[string]string {
		out := map[string]string{}
		for name, content := range all {
			if !strings.Contains(" "+strings.Join(names, " ")+" ", " "+name+" ") {
				out[name] = content
			}
		}
		return out
	}
	trust := func(o *ahpconfig.Options, _ string) {
		o.Trusted = func(path string, content []byte) bool {
			return strings.HasSuffix(path, "registration.json") && strings.Contains(string(content), "com.example.p")
		}
	}
	tests := []struct {
		name  string
		files map[string]string
		with  func(o *ahpconfig.Options, dir string)
		want  string // ids in order
	}{
		{"nothing", without("managed.json", userFile, projectFile), nil, ""},
		{"all three", all, trust, "com.example.m com.example.u com.example.p"},
		{"no project", without(projectFile), nil, "com.example.m com.example.u"},
		{"no project folder", all, func(o *ahpconfig.Options, _ string) { o.Dir = "" }, "com.example.m com.example.u"},
		{"a named file", all, func(o *ahpconfig.Options, dir string) { o.File = filepath.Join(dir, "given.json") }, "com.example.m com.example.g com.example.h"},
		{"the project's file by name", all, func(o *ahpconfig.Options, dir string) { o.File = filepath.Join(dir, projectFile) }, "com.example.m com.example.p"},
		{"an imposed file", all, func(o *ahpconfig.Options, dir string) { o.Imposed = filepath.Join(dir, "given.json"); trust(o, dir) }, "com.example.m com.example.g com.example.h"},
		{"an imposed file and a named one", all, func(o *ahpconfig.Options, dir string) {
			o.Imposed, o.File = filepath.Join(dir, "given.json"), filepath.Join(dir, userFile)
		}, "com.example.m com.example.g com.example.h com.example.u"},
		{"one file twice", all, func(o *ahpconfig.Options, dir string) {
			o.Imposed, o.File = filepath.Join(dir, "given.json"), dir+"/home/../given.json"
		}, "com.example.m com.example.g com.example.h"},
		{"the managed file by name", all, func(o *ahpconfig.Options, dir string) { o.File = filepath.Join(dir, "managed.json") }, "com.example.m"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir, opts := machine(t, tt.files)
			if tt.with != nil {
				tt.with(&opts, dir)
			}
			l, err := ahpconfig.Load(opts)
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			if l.Registration != nil {
				for _, b := range l.Registration.Hooks {
					ids = append(ids, b.ID)
					if file := l.FileOf(b.ID); !strings.HasPrefix(file, dir) {
						t.Errorf("%s is registered in %q", b.ID, file)
					}
				}
			}
			if got := strings.Join(ids, " "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestLoadRefuses(t *testing.T) {
	valid := registration("com.example.u")
	tests := []struct {
		name  string
		files map[string]string
		with  func(o *ahpconfig.Options, dir string)
		want  []string
	}{
		{"a project that isn't trusted", map[string]string{projectFile: valid}, nil, []string{projectFile, "isn't trusted", "--registration"}},
		{"a project of which other bytes are trusted", map[string]string{projectFile: valid}, func(o *ahpconfig.Options, _ string) {
			o.Trusted = func(_ string, content []byte) bool { return string(content) == valid+"\n" }
		}, []string{"isn't trusted"}},
		{"the named file is missing", nil, func(o *ahpconfig.Options, dir string) { o.File = filepath.Join(dir, "x.json") }, []string{"x.json"}},
		{"the imposed file is missing", map[string]string{"given.json": valid}, func(o *ahpconfig.Options, dir string) {
			o.Imposed, o.File = filepath.Join(dir, "x.json"), filepath.Join(dir, "given.json")
		}, []string{"x.json"}},
		{"the managed file is named and missing", nil, func(o *ahpconfig.Options, _ string) { o.File = o.Managed }, []string{"managed.json"}},
		{"a backend in the imposed and the named file", map[string]string{"given.json": valid, "other.json": valid}, func(o *ahpconfig.Options, dir string) {
			o.Imposed, o.File = filepath.Join(dir, "given.json"), filepath.Join(dir, "other.json")
		}, []string{"other.json:2:7", "com.example.u", "given.json"}},
		{"a fault in the managed file", map[string]string{"managed.json": strings.Replace(valid, "persistent", "x", 1), userFile: valid}, nil,
			[]string{"managed.json:2:", "/hooks/0/transport/lifecycle", "per_event"}},
		{"an empty file", map[string]string{userFile: ""}, nil, []string{userFile + ": "}},
		{"a literal secret", map[string]string{userFile: strings.Replace(valid, `"events"`, `"password":"x","events"`, 1)}, nil, []string{userFile + ":2:", "password"}},
		{"a backend in two files", map[string]string{"managed.json": valid, userFile: registration("com.example.x", "com.example.u")}, nil,
			[]string{userFile + ":3:7", "com.example.u", "managed.json"}},
		{"a folder", map[string]string{userFile + "/x": ""}, nil, []string{"regular file"}},
		{"a huge file", map[string]string{userFile: valid + strings.Repeat(" ", 4<<20)}, nil, []string{"at most"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir, opts := machine(t, tt.files)
			if tt.with != nil {
				tt.with(&opts, dir)
			}
			l, err := ahpconfig.Load(opts)
			if err == nil {
				t.Fatalf("accepted %+v", l.Sources)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q doesn't say %q", err, part)
				}
			}
		})
	}
}

// TestPipes holds that what is no regular file is refused and not waited for.
func TestPipes(t *testing.T) {
	_, opts := machine(t, map[string]string{"managed.json": registration("com.example.m")})
	opts.File = filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(opts.File, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ahpconfig.Load(opts); err == nil || !strings.Contains(err.Error(), "regular file") {
		t.Errorf("got %v", err)
	}
}

// TestHomeIsTheAccounts holds that HOME, which a repository may be able to set,
// decides nothing.
func TestHomeIsTheAccounts(t *testing.T) {
	dir, opts := machine(t, map[string]string{userFile: registration("com.example.evil")})
	t.Setenv("HOME", filepath.Join(dir, "home"))
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "home", ".config"))
	opts.Home = ""
	l, err := ahpconfig.Load(opts)
	if err != nil {
		t.Fatalf("nothing can be shown while the account's own registration is at fault: %v", err)
	}
	if l.FileOf("com.example.evil") != "" {
		t.Error("HOME chose the registration")
	}
	for _, path := range l.Looked {
		if strings.HasPrefix(path, filepath.Join(dir, "home")) {
			t.Errorf("looked for %s", path)
		}
	}
}
