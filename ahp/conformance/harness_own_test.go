package conformance_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/conformance"
	"github.com/abhed/abhed/internal/require"
)

// asAbhed marks a run of the test binary as the wrapper around Abhed.
const asAbhed = "conformance-abhed"

// TestOwnHarnesses runs the suite over every harness that the repository ships, as
// the programs that users build.
func TestOwnHarnesses(t *testing.T) {
	if raceEnabled {
		t.Skip("the programs are built without the race detector: the run without it has them")
	}
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin+string(filepath.Separator), "./examples/harness", "./cmd/ahp", "./cmd/abhed")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	self := programs(t)
	abhed := filepath.Join(bin, "abhed")
	for name, h := range map[string]struct {
		command []string
		refused string
		needs   string
	}{
		"example":           {[]string{filepath.Join(bin, "harness"), "{registration}", "{calls}"}, `{"command":"touch '{}'","colour":"red"}`, ""},
		"abhed":             {[]string{self, asAbhed, abhed, "none"}, `{"command":"touch '{}' refused"}`, ""},
		"abhed in a bubble": {[]string{self, asAbhed, abhed, "process"}, `{"command":"touch '{}' refused"}`, "bwrap"},
	} {
		for _, binding := range bindings() {
			if h.needs != "" && binding != conformance.HTTP {
				continue // the sandbox is the same over every binding
			}
			t.Run(name+"/"+string(binding), func(t *testing.T) {
				if h.needs != "" {
					require.Path(t, h.needs)
				}
				r, err := conformance.Harness(t.Context(), conformance.HarnessTarget{Command: h.command, Binding: binding},
					conformance.HarnessOptions{
						Relay: []string{filepath.Join(bin, "ahp"), "conform", "harness", "relay"}, RefusedInput: ahp.Raw(h.refused),
						Deadline: 2 * time.Second, Grace: 20 * time.Second, Limit: 2 * time.Minute,
					})
				conforms(t, r, err)
			})
		}
	}
}

// wrapAbhed is the contract between the suite and a harness, for Abhed: the calls
// become the script of a model. It returns Abhed's exit code.
func wrapAbhed(program, tier string) int {
	code, err := playAbhed(program, tier)
	if err != nil {
		os.Stderr.WriteString("wrapper: " + err.Error() + "\n")
		return 70
	}
	return code
}

func playAbhed(program, tier string) (int, error) {
	text, err := os.ReadFile(os.Getenv("AHP_CONFORM_CALLS"))
	if err != nil {
		return 0, err
	}
	steps := []any{}
	for line := range strings.Lines(string(text)) {
		var call struct {
			Name  string          `json:"name"`
			Input json.RawMessage `json:"input"`
		}
		if err := json.Unmarshal([]byte(line), &call); err != nil {
			return 0, err
		}
		steps = append(steps, map[string]any{"calls": []any{map[string]any{"name": call.Name, "args": call.Input}}})
	}
	steps = append(steps, map[string]any{"text": "done"})
	home, err := os.MkdirTemp("", "ahp-conform-abhed-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(home)
	for name, v := range map[string]any{
		"steps.json": map[string]any{"steps": steps},
		"model.json": map[string]any{"model": "s/x", "custom_providers": []any{map[string]any{"name": "s", "api": "script", "base_url": "steps.json"}}},
	} {
		data, err := json.Marshal(v)
		if err == nil {
			err = os.WriteFile(filepath.Join(home, name), data, 0o600)
		}
		if err != nil {
			return 0, err
		}
	}
	cmd := exec.Command(program, "-p", "go", "--config", filepath.Join(home, "model.json"), "--ahp", os.Getenv("AHP_CONFORM_REGISTRATION"),
		"-C", os.Getenv("AHP_CONFORM_DIR"), "--min-tier", tier, "--allow", "bash(*)", "--deny", "bash(touch * refused)", "--output", "stream-json")
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_STATE_HOME="+filepath.Join(home, "state"), "XDG_CONFIG_HOME="+filepath.Join(home, "config"))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	var exit *exec.ExitError
	if err := cmd.Run(); errors.As(err, &exit) {
		return exit.ExitCode(), nil
	} else if err != nil {
		return 0, err
	}
	return 0, nil
}
