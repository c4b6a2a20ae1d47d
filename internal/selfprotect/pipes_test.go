package selfprotect_test

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"
)

// TestPipesAreNotWaitedFor holds that a pipe which an agent made in place of a folder or
// of a file of git's doesn't keep the judgement from coming to an end.
func TestPipesAreNotWaitedFor(t *testing.T) {
	w := makeWorld(t)
	err := errors.Join(syscall.Mkfifo(w.project+"/thing", 0o600), os.MkdirAll(w.project+"/.git", 0o755))
	if _, there := os.Lstat(w.project + "/.git/index"); there == nil {
		err = errors.Join(err, os.Remove(w.project+"/.git/index"))
	}
	if err = errors.Join(err, syscall.Mkfifo(w.project+"/.git/index", 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"rm -rf thing/*", "find thing -delete", "cd thing; rm -rf *", "git clean -fdx", "git checkout .", "rsync -a thing/ ."} {
		ended := make(chan string, 1)
		go func() { ended <- w.command(t, command+"; rm ~/.claude/settings.json") }()
		select {
		case reason := <-ended:
			if reason == "" {
				t.Errorf("%s: not denied", command)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%s: the judgement didn't end", command)
		}
	}
}
