package policy

import "testing"

func BenchmarkCommand(b *testing.B) {
	w := newWorld(b)
	rs := rules(b, "deny bash(rm *)", "deny bash(curl *)", "ask bash(git push*)", "allow bash(go test*)", "allow bash(git status*)", "deny write(/etc/**)", "deny read(**/.env)")
	in := w.bash(ModeDefault, "cd sub && go test -run TestX ./... | head -50")
	b.ReportAllocs()
	for b.Loop() {
		rs.Evaluate(in)
	}
}

func BenchmarkCommandNoPathRules(b *testing.B) {
	w := newWorld(b)
	rs := rules(b, "deny bash(rm *)", "deny bash(curl *)", "ask bash(git push*)", "allow bash(go test*)", "allow bash(git status*)")
	in := w.bash(ModeDefault, "go test -run TestX ./...")
	b.ReportAllocs()
	for b.Loop() {
		rs.Evaluate(in)
	}
}

func BenchmarkRead(b *testing.B) {
	w := newWorld(b)
	rs := rules(b, "deny write(/etc/**)", "deny read(**/.env)", "deny read(~/.ssh/**)", "allow write(src/**)")
	in := w.file(ModeDefault, "read", "sub/deep/file.go")
	b.ReportAllocs()
	for b.Loop() {
		rs.Evaluate(in)
	}
}

func BenchmarkResolve(b *testing.B) {
	w := newWorld(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Resolve(w.root, "sub/deep/file.go", w.home); err != nil {
			b.Fatal(err)
		}
	}
}
