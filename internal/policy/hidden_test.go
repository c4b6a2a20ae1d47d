package policy

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestHidden(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(root, "home")
	work := filepath.Join(root, "work")
	for _, f := range []string{"home/.ssh/id", "home/notes", "work/.env", "work/a/b/.env", "work/a/keep", "work/secrets/x", "work/k.pem", "work/a/k.pem"} {
		p := filepath.Join(root, f)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(home, "notes"), filepath.Join(work, "link.pem")); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		rule string
		want []string
	}{
		{"read(~/.ssh/**)", []string{"home/.ssh"}},
		{"read(**/.env)", []string{"work/.env", "work/a/b/.env"}},
		{"read(secrets)", []string{"work/secrets"}},
		{"read(*.pem)", []string{"work/k.pem", "home/notes"}},
		{"*(" + work + "/a/**)", []string{"work/a"}},
		{"read(missing/**)", nil},
		{"write(**)", nil},
		{"read", nil},
	}
	for _, tt := range tests {
		rs, problems := Compile(RuleLists{Deny: []RuleText{{Text: tt.rule}}}, Known{Tools: map[string]SubjectKind{"read": SubjectPath, "write": SubjectPath}})
		if rs == nil {
			t.Fatalf("%s: %v", tt.rule, problems)
		}
		got, complete := rs.Hidden([]string{work}, home, 1000)
		var want []string
		for _, w := range tt.want {
			want = append(want, filepath.Join(root, w))
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) || !complete {
			t.Errorf("%s hides %v (complete %t), want %v", tt.rule, got, complete, want)
		}
	}
	rs, _ := Compile(RuleLists{Deny: []RuleText{{Text: "read(**/.env)"}}}, Known{Tools: map[string]SubjectKind{"read": SubjectPath}})
	if _, complete := rs.Hidden([]string{work}, home, 3); complete {
		t.Error("a search of 3 entries says that it is complete")
	}
}

// TestFrozen covers what a sandbox mounts read-only, and what is found by way of a
// link.
func TestFrozen(t *testing.T) {
	w := newWorld(t)
	for _, f := range []string{"real/x.key", "real/sub/y.key", "real/z", "work/go.sum", "work/gen/a.go", "work/b.go", "home/.bashrc"} {
		p := filepath.Join(w.base, f)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link(t, w.base+"/real", w.base+"/link")
	link(t, w.base+"/real", w.root+"/inner")
	for _, tt := range []struct {
		rule           string
		frozen, hidden []string
	}{
		{"write(go.sum)", []string{"work/go.sum"}, nil}, {"write(gen/**)", []string{"work/gen"}, nil}, {"write(**/*.go)", []string{"work/b.go", "work/gen/a.go"}, nil}, {"write(~/.bashrc)", []string{"home/.bashrc"}, nil}, {"write(missing)", nil, nil},
		{"write(" + w.base + "/link/*.key)", []string{"real/x.key"}, nil}, {"write(" + w.base + "/link/**)", []string{"real"}, nil}, {"write(inner/**/*.key)", []string{"real/sub/y.key", "real/x.key"}, nil}, {"write(" + w.base + "/link)", []string{"real"}, nil},
		{"read(" + w.base + "/link/*.key)", nil, []string{"real/x.key"}}, {"*(go.sum)", []string{"work/go.sum"}, []string{"work/go.sum"}},
		{"write", nil, nil}, {"*", nil, nil}, {"write(**)", nil, nil}, {"edit(go.sum)", nil, nil}, {"bash(go.sum)", nil, nil},
	} {
		rs := rules(t, "deny "+tt.rule, "ask write(b.go)", "allow write(go.sum)")
		for name, list := range map[string]struct {
			find func([]string, string, int) ([]string, bool)
			want []string
		}{"frozen": {rs.Frozen, tt.frozen}, "hidden": {rs.Hidden, tt.hidden}} {
			got, complete := list.find([]string{w.root}, w.home, 1000)
			slices.Sort(got)
			var want []string
			for _, p := range list.want {
				want = append(want, filepath.Join(w.base, p))
			}
			if !slices.Equal(got, want) || !complete {
				t.Errorf("%s: %s is %v (complete %t), want %v", tt.rule, name, got, complete, want)
			}
		}
	}
	if _, complete := rules(t, "deny write(**/*.go)").Frozen([]string{w.root}, w.home, 2); complete {
		t.Error("a search of 2 entries says that it is complete")
	}
}

func TestMatches(t *testing.T) {
	rs, problems := Compile(RuleLists{Deny: []RuleText{{Text: "bash(git push*)"}, {Text: "write"}}}, Known{Tools: map[string]SubjectKind{"bash": SubjectCommand, "write": SubjectPath, "read": SubjectPath}})
	if rs == nil {
		t.Fatal(problems)
	}
	for _, tt := range []struct {
		tool    string
		kind    SubjectKind
		subject string
		want    bool
	}{
		{"bash", SubjectCommand, "ls && git push", true},
		{"bash", SubjectCommand, "ls", false},
		{"bash", SubjectCommand, "$x push", true},
		{"bash", SubjectCommand, "if", true},
		{"bash", SubjectCommand, "rm -rf x", false},
		{"write", SubjectPath, "a", true},
		{"read", SubjectPath, "a", false},
	} {
		got := rs.Matches(Input{Call: Call{Tool: tt.tool, WorkDir: "/w", Roots: []string{"/w"}}, Declaration: Declaration{Kind: tt.kind, Subject: tt.subject}, Env: Env{Mode: ModeBypass}})
		if got != tt.want {
			t.Errorf("%s %q: %t, want %t", tt.tool, tt.subject, got, tt.want)
		}
	}
}

func TestReadDenied(t *testing.T) {
	known := Known{Tools: map[string]SubjectKind{"read": SubjectPath}}
	rs, problems := Compile(RuleLists{Deny: []RuleText{{Text: "read(**/.env)"}, {Text: "read(~/x/**)"}}, Ask: []RuleText{{Text: "read(asked)"}}}, known)
	if rs == nil {
		t.Fatal(problems)
	}
	denied := rs.ReadDenied([]string{"/w"}, "/h", []string{"/p/key"})
	for p, want := range map[string]bool{"/w/a/.env": true, "/w/.env": true, "/w/env": false, "/w/asked": true, "/h/x/y": true, "/h/y": false, "/p/key": true, "/p/keys": false, "/other/.env": false} {
		if denied(p) != want {
			t.Errorf("%s: %t, want %t", p, !want, want)
		}
	}
	w := newWorld(t)
	link(t, w.home, w.base+"/link")
	if rs := rules(t, "deny read("+w.base+"/link/*)"); !rs.ReadDenied([]string{w.root}, w.home, nil)(w.home + "/x") {
		t.Error("a rule by way of a link doesn't hold for the place itself")
	}
	none, _ := Compile(RuleLists{Deny: []RuleText{{Text: "read"}}}, known)
	if none.ReadDenied([]string{"/w"}, "/h", nil) != nil {
		t.Error("there is a filter though nothing can match")
	}
}

// TestRulesReachWhatDoesTheSame holds that a rule which restricts reading or
// writing a file restricts the other tools that would show or write it, and that
// an allow rule doesn't reach as far.
func TestRulesReachWhatDoesTheSame(t *testing.T) {
	known := Known{Tools: map[string]SubjectKind{"read": SubjectPath, "grep": SubjectPath, "edit": SubjectPath, "write": SubjectPath, "glob": SubjectPath}}
	rs, problems := Compile(RuleLists{Deny: []RuleText{{Text: "read(secret)"}, {Text: "write(fixed)"}}, Ask: []RuleText{{Text: "read(asked)"}}, Allow: []RuleText{{Text: "read(/etc/x)"}}}, known)
	if rs == nil {
		t.Fatal(problems)
	}
	for _, tt := range []struct {
		tool, path string
		want       Verdict
	}{
		{"grep", "secret", Deny}, {"edit", "secret", Deny}, {"grep", "asked", Ask}, {"glob", "secret", Allow}, {"write", "secret", Allow},
		{"grep", "other", Allow}, {"read", "/etc/x", Allow}, {"grep", "/etc/x", Ask}, {"edit", "fixed", Deny}, {"read", "fixed", Allow},
	} {
		in := Input{Call: Call{Tool: tt.tool, WorkDir: "/w", Roots: []string{"/w"}}, Env: Env{Mode: ModeAcceptEdits},
			Declaration: Declaration{Kind: SubjectPath, Subject: tt.path, Mutates: tt.tool == "edit" || tt.tool == "write"}}
		if got := rs.Evaluate(in); got.Verdict != tt.want {
			t.Errorf("%s %s: %s at step %s, want %s", tt.tool, tt.path, got.Verdict, got.Step, tt.want)
		}
	}
}
