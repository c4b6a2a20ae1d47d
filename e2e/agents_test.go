package e2e

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/e2e/modelserver"
	"github.com/abhed/abhed/internal/require"
	"github.com/abhed/abhed/internal/strictjson"
)

var (
	agentsFlag    = flag.String("agents", "", "hosts, or folders of -agents-dir, separated by commas; all if empty")
	agentsDirFlag = flag.String("agents-dir", os.Getenv("ABHED_AGENTS"), "folder that install.sh filled")
	keep          = flag.Bool("keep", false, "keep the folder of a run that failed")
)

// agent is one coding agent in one version.
type agent struct {
	// name is the folder under -agents-dir, host the name that `ahp` knows it by.
	name, host string
	// pkg is the npm package whose version counts.
	pkg string
	// variable names, for an agent that is no package, the variable with the folder
	// that its program is in, under the host's name.
	variable string
	// node22 says that it needs a newer Node than the common one.
	node22 bool
	// call is the tool call that makes marker.txt.
	call modelserver.Call
	// seen is the call's input as the agent shows it to a hook, if that differs.
	seen string
	// success is what the agent tells the model of a command that succeeded, for one
	// that now and then loses what the command printed.
	success string
	// limit bounds a run.
	limit time.Duration
	// prepare writes the agent's configuration and returns the commands to run, of
	// which the last is the run that counts.
	prepare func(s *stage) [][]string
}

// marker is the command that the model asks for, and made what it prints, which
// is not in the command: hosts repeat that in a refusal. It holds nothing that has
// to be escaped in JSON, and no substitution, which Gemini CLI refuses to run.
const (
	marker = "touch marker.txt && echo made it | tr ' ' -"
	made   = "made-it"
)

// How long a run may take on a machine that others load, with a hook at every
// event; alone it is a tenth of it.
const (
	quick = 2 * time.Minute
	slow  = 5 * time.Minute
)

const prompt = "Please make the marker."

// agents returns all agents that are known here.
func agents() []agent {
	command := func(tool, more string) modelserver.Call {
		return modelserver.Call{Name: tool, Args: `{"command":"` + marker + `"` + more + `}`}
	}
	described := `,"description":"make the marker"`
	return []agent{
		{name: "claude", host: "claude-code", pkg: "@anthropic-ai/claude-code", call: command("Bash", described), limit: quick, prepare: claudeCode},
		{name: "claude197", host: "claude-code", pkg: "@anthropic-ai/claude-code", call: command("Bash", described), limit: quick, prepare: claudeCode},
		{name: "codex", host: "codex", pkg: "@openai/codex", call: modelserver.Call{Name: "exec_command", Args: `{"cmd":"` + marker + `"}`}, seen: `{"command":"` + marker + `"}`, limit: quick, prepare: codex},
		{name: "gemini", host: "gemini", pkg: "@google/gemini-cli", call: command("run_shell_command", described), limit: quick, prepare: gemini},
		{name: "qwen", host: "qwen", pkg: "@qwen-code/qwen-code", node22: true, call: command("run_shell_command", described+`,"is_background":false`), success: "Exit Code: 0", limit: quick, prepare: qwen},
		{name: "opencode", host: "opencode", pkg: "opencode-ai", call: command("bash", described), limit: slow, prepare: opencode("opencode")},
		{name: "kilo", host: "kilo", pkg: "@kilocode/cli", call: command("bash", described), limit: slow, prepare: opencode("kilo")},
		{name: "pi", host: "pi", pkg: "@earendil-works/pi-coding-agent", call: command("bash", ""), limit: quick, prepare: pi},
		{name: "pi22", host: "pi", pkg: "@earendil-works/pi-coding-agent", node22: true, call: command("bash", ""), limit: quick, prepare: pi},
		{name: "copilot", host: "copilot", pkg: "@github/copilot", call: command("bash", described), limit: slow, prepare: copilot},
		{name: "droid", host: "droid", pkg: "@factory/cli-linux-x64", call: command("Execute", `,"summary":"s","timeout":30,"riskLevel":"low","riskLevelReason":"x"`), limit: quick, prepare: droid},
		{name: "cline", host: "cline", pkg: "cline", call: modelserver.Call{Name: "run_commands", Args: `{"commands":["` + marker + `"]}`}, limit: quick, prepare: cline},
		{name: "crush", host: "crush", variable: "CRUSH_DIR", call: command("bash", described), limit: quick, prepare: crush},
	}
}

// chosen returns the agents that -agents asks for.
func chosen(t testing.TB) []agent {
	t.Helper()
	all := agents()
	if *agentsFlag == "" {
		return all
	}
	var out []agent
	for name := range strings.SplitSeq(*agentsFlag, ",") {
		named := func(a agent) bool { return a.host == name || a.name == name }
		if !slices.ContainsFunc(all, named) {
			t.Fatalf("-agents names %q, which is no host and no folder known here", name)
		}
		for _, a := range all {
			if named(a) && !slices.ContainsFunc(out, func(b agent) bool { return a.name == b.name }) {
				out = append(out, a)
			}
		}
	}
	return out
}

// agentsDir returns the folder of the agents, or ends the test if a is not there.
func agentsDir(t testing.TB, a agent) string {
	t.Helper()
	need := "agent-" + a.host
	if a.variable != "" {
		dir := os.Getenv(a.variable)
		if dir == "" {
			require.Missing(t, need, a.variable+" doesn't name the folder with "+a.host)
		}
		if _, err := os.Stat(filepath.Join(dir, a.host)); err != nil {
			require.Missing(t, need, err.Error())
		}
		dir, err := filepath.Abs(dir)
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}
	if *agentsDirFlag == "" {
		require.Missing(t, need, "no folder of agents: give -agents-dir or ABHED_AGENTS, and see e2e/install.sh")
	}
	dir, err := filepath.Abs(*agentsDirFlag)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{a.name, "node22"} {
		if _, err := os.Stat(filepath.Join(dir, name, "node_modules")); err != nil && (name == a.name || a.node22) {
			require.Missing(t, need, err.Error())
		}
	}
	return dir
}

// version returns the version of the agent's package, or what its program says.
func (s *stage) version() string {
	s.t.Helper()
	if s.agent.variable != "" {
		cmd := exec.Command(filepath.Join(s.bin, s.agent.host), "--version")
		cmd.Dir, cmd.Env = s.repo, s.environ()
		out, err := cmd.Output()
		words := strings.Fields(string(out))
		if err != nil || len(words) == 0 {
			s.t.Fatalf("%s: %q, %v", strings.Join(cmd.Args, " "), out, err)
		}
		return strings.TrimPrefix(words[len(words)-1], "v")
	}
	b, err := os.ReadFile(s.program(s.agent.pkg, "package.json"))
	if err != nil {
		s.t.Fatal(err)
	}
	var manifest struct {
		Version string `json:"version"`
	}
	if err := strictjson.Unmarshal(b, &manifest, strictjson.Options{}); err != nil {
		s.t.Fatal(err)
	}
	return manifest.Version
}
