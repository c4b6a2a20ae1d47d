package policy

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// hostileLines are command lines as long as they may be, of shapes that invite
// work that grows faster than they do.
func hostileLines() map[string]string {
	fill := func(head string, piece func(i int) string) string {
		var b strings.Builder
		b.WriteString(head)
		for i := 0; b.Len()+len(piece(i)) < maxCommand-64; i++ {
			b.WriteString(piece(i))
		}
		return b.String()
	}
	same := func(s string) func(int) string { return func(int) string { return s } }
	return map[string]string{
		"programs":            fill("x", same(" git")),
		"removals":            fill("x", same(" rm")),
		"pushes":              fill("x", same(" git push")),
		"force at the end":    fill("x", same(" git")) + " --force",
		"publications":        fill("x", same(" npm docker")),
		"quoted":              "x '" + fill("", same("git ")) + "'",
		"quoted words":        fill("x", same(" '"+strings.Repeat("git ", 1000)+"'")),
		"quoted removals":     fill("x", same(" '"+strings.Repeat("rm ", 1300)+"'")),
		"subcommands":         fill("git", same(" git")),
		"options":             fill("x", same(" -a")),
		"long options":        fill("terraform", same(" -a=b")),
		"options with values": fill("x", same(" -a b")),
		"distinct words":      fill("rm", func(i int) string { return fmt.Sprintf(" a%d", i) }),
		"distinct paths":      fill("cat", func(i int) string { return fmt.Sprintf(" a%d/b", i) }),
		"absolute paths":      fill("cat", func(i int) string { return fmt.Sprintf(" /a%d/b%d", i, i) }),
		"dotted paths":        fill("cat", func(i int) string { return fmt.Sprintf(" .a/.%d", i) }),
		"unknown words":       fill("x", same(" $a")),
		"unknown arguments":   fill("git", same(" $a")),
		"half unknown":        fill("x", same(" a$a/b*")),
		"values":              fill("x", same(" a=b")),
		"many equal signs":    fill("x ", same("a=")),
		"deep path":           fill("cat ", same("a/")),
		"parts":               fill("", same("x git rm;")),
		"thick parts":         fill("", same("x "+strings.Repeat("git ", 16)+";")),
		"assignments":         fill("", func(i int) string { return fmt.Sprintf("a%d=1 ", i) }),
		"distinct parts":      fill("", func(i int) string { return fmt.Sprintf("a%d b;", i) }),
		"names":               fill("read", func(i int) string { return fmt.Sprintf(" a%d", i) }),
		"arithmetic":          fill("let", func(i int) string { return fmt.Sprintf(" a%d=1", i) }),
		"redirections":        fill("x", func(i int) string { return fmt.Sprintf(" >a%d", i) }),
		"sed":                 "sed '" + fill("", same("s/a/b/;")) + "'",
		"sed addresses":       "sed '" + fill("", same("/")) + "'",
		"awk":                 "awk '" + fill("", same("system(\"x\") ")) + "'",
		"awk pipes":           "awk '" + fill("", same("print | ")) + "'",
		"vim":                 fill("vim", same(" -c '!rm x'")),
		"editor searches":     "vim -c '" + fill("", same("/a")) + "'",
		"editor globals":      "vim -c '" + fill("", same("g/a/")) + "'",
		"editor lines":        "ed <<E\n" + fill("", same("1d\n")) + "E\n",
		"editor shells":       "ed <<E\n" + fill("", same("!x\n")) + "E\n",
		"sed shells":          "sed '" + fill("", same("e x\n")) + "'",
		"transports":          fill("git", same(" ext::x")),
		"addresses":           fill("socat", same(" exec:x")),
		"text variables":      fill("", same("PAGER=x ")),
		"loops":               fill("for i in", func(i int) string { return fmt.Sprintf(" a%d", i) }) + "; do x; done",
		"nested arithmetic":   "echo " + strings.Repeat("$((", 90) + "1" + strings.Repeat("))", 90),
		"git settings":        fill("git", same(" -c alias.a=b")),
		"tar":                 fill("tar", same(" --to-command=rm")),
		"strings":             "sh -c '" + fill("", same("x git ")) + "'",
		"find":                fill("find", same(" -exec rm")),
		"fprintf":             fill("find", func(i int) string { return fmt.Sprintf(" -fprintf a%d", i) }),
		"globs":               fill("cat", same(" /*/*")),
		"stars":               fill("cat /", same("*/")),
	}
}

// TestHostileSizes holds that the time of one evaluation is bounded, whatever
// shape the command has.
func TestHostileSizes(t *testing.T) {
	// Work that grows with the square of the input takes minutes here; the bound is
	// far above what any machine needs for the rest.
	const bound = 10 * time.Second
	w := newWorld(t)
	rs := rules(t, "deny bash(rm *)", "deny bash(git * --force*)", "ask bash(git push*)", "ask bash(terraform apply*)", "deny bash(npm * x *y)", "deny read(**/.env)", "deny read(~/.ssh/**)", "deny write(/etc/**)", "ask read(secrets/**)", "allow bash(x *)")
	for name, c := range hostileLines() {
		start := time.Now()
		got := rs.Evaluate(w.auto(c))
		took := time.Since(start)
		if took > bound {
			t.Errorf("%s took %v", name, took)
		}
		t.Logf("%-20s %v %s at %s", name, took, got.Verdict, got.Step)
		if strings.Contains(name, "programs") && got.Verdict == Allow {
			t.Errorf("%s: allowed", name)
		}
	}
}
