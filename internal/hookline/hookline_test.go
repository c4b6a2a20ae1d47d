package hookline

import (
	"os/exec"
	"os/user"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		line      string
		want      Call
		noService bool
		err       string
	}{
		{line: "claude-code", want: Call{Host: "claude-code"}},
		{line: "cline --event PreToolUse --limit 60000 --on-missing allow --no-service --no-self-protect",
			want: Call{Host: "cline", Native: "PreToolUse", Limit: time.Minute, Open: true, Unprotected: true}, noService: true},
		{line: "--home=/h --registration=/r/x.json droid --on-missing=deny", want: Call{Host: "droid", Home: "/h", Registration: "/r/x.json"}},
		{line: "droid --limit=0", want: Call{Host: "droid"}, err: "--limit 0: expected milliseconds, 1 or more"},
		{line: "droid --limit 1e3", want: Call{Host: "droid"}, err: "--limit 1e3"},
		{line: "droid --limit 99999999999", want: Call{Host: "droid"}, err: "--limit 99999999999"},
		{line: "droid --limit", want: Call{Host: "droid"}, err: "--limit is missing its value"},
		{line: "droid --on-missing maybe", want: Call{Host: "droid"}, err: "--on-missing maybe: expected deny or allow"},
		{line: "droid --on-missing allow --on-missing deny", want: Call{Host: "droid"}},
		{line: "droid --home relative", want: Call{Host: "droid", Home: "relative"}, err: "relative path relative"},
		{line: "droid --no-service=false", want: Call{Host: "droid"}, noService: true, err: "expected no value"},
		{line: "droid pi", want: Call{Host: "droid"}, err: `found "pi"`},
		{line: "droid --help --limit 5", want: Call{Host: "droid", Limit: 5 * time.Millisecond}, err: `found "--help"`},
	} {
		got, noService, err := Parse(strings.Fields(tt.line))
		if !reflect.DeepEqual(got, tt.want) || noService != tt.noService {
			t.Errorf("%s: found %+v, %v\nexpected %+v, %v", tt.line, got, noService, tt.want, tt.noService)
		}
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: found the error %v, expected %q", tt.line, err, tt.err)
		}
	}
}

// TestSpend holds that what reading took is taken off the budget and not off a longer
// limit.
func TestSpend(t *testing.T) {
	c := Call{Limit: 10 * time.Second}
	c.Spend(3 * time.Second)
	if got := c.Budget(); got != 5*time.Second {
		t.Errorf("a budget of %v is left, expected 5 s of 8", got)
	}
	c = Call{}
	c.Spend(time.Hour)
	if c.Limit != time.Millisecond {
		t.Errorf("a limit of %v is left, expected the least there is", c.Limit)
	}
	if c = (Call{}); c.Budget() != 24*time.Second || c.Patience() <= c.Budget() || c.Patience() > 85*c.HostLimit()/100 {
		t.Errorf("budget %v, patience %v", c.Budget(), c.Patience())
	}
}

func TestComplete(t *testing.T) {
	text := []byte("x")
	for _, tt := range []struct {
		a    Answer
		want bool
	}{
		{Answer{Code: ExitPass}, true},
		{Answer{Code: ExitPass, Stdout: text}, true},
		{Answer{Code: ExitDeliver}, false},
		{Answer{Code: ExitDeliver, Stderr: text}, false},
		{Answer{Code: ExitDeliver, Stdout: text}, true},
		{Answer{Code: ExitDeny}, false},
		{Answer{Code: ExitDeny, Stderr: text}, true},
		{Answer{Code: 0}, false},
		{Answer{Code: 1, Stderr: text}, false},
	} {
		if got := tt.a.Complete(); got != tt.want {
			t.Errorf("%+v: %v", tt.a, got)
		}
	}
}

func TestHome(t *testing.T) {
	const text = "# comment:x:1000:1::/no:/bin/sh\n+nis:x:1000:1::/no:\nshort:x:1000:1\n:x:1000:1::/no:\nada:x:1000:1000:Ada,,,:/home/ada:/bin/sh\nagain:x:1000:1000::/other:/bin/sh\nroot:x:0:0::/root:"
	for uid, want := range map[int]string{1000: "/home/ada", 0: "/root", 7: "", 1: "", 100: ""} {
		if got := homeIn(text, uid); got != want {
			t.Errorf("account %d: found %q, expected %q", uid, got, want)
		}
	}
	if got := stateOf("/h", "/nonesuch"); got != "/h/.local/state/ahp" {
		t.Errorf("found %q", got)
	}
	if got := stateOf("", "/nonesuch") + stateOf("h", userDatabase); got != "" {
		t.Errorf("found %q where no home is known", got)
	}
	account, err := user.LookupId(strconv.Itoa(syscall.Getuid()))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := stateOf("", userDatabase), filepath.Join(account.HomeDir, ".local/state/ahp"); got != want && got != "" { // "" where another database has the account
		t.Errorf("found %q, the system says %q", got, want)
	}
}

// TestImports holds what makes this package come first: it needs nothing of this
// module, and nothing of the standard library that fmt doesn't need but what is listed.
func TestImports(t *testing.T) {
	list := func(name string) []string {
		out, err := exec.Command("go", "list", "-deps", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(string(out))
	}
	known := append(list("fmt"), "bufio", "bytes", "strings", "unicode", "encoding/binary", "iter", "internal/stringslite", "github.com/abhed/abhed/internal/hookline")
	for _, name := range list(".") {
		if !slices.Contains(known, name) {
			t.Errorf("it needs %s: the hook is initialised after it; do without, or add it here once the order is the same (GODEBUG=inittrace=1)", name)
		}
	}
}
