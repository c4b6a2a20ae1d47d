package policy

import "testing"

// everyday are commands of everyday work: what must stay judgeable in mode auto,
// and what stays allowed by the rules of TestEveryday.
var everyday = []struct {
	command string
	// byRule is the verdict in mode default.
	byRule Verdict
}{
	{"go test ./...", Allow}, {"go test -race -count=1 -run 'TestX|TestY' ./internal/...", Allow}, {"go build ./...", Allow}, {"go vet ./... && go test ./...", Allow}, {"go test ./... 2>&1 | tail -40", Allow}, {"go mod tidy", Allow}, {"gofmt -l .", Allow}, {"GOFLAGS=-mod=mod go test ./...", Ask}, {"CGO_ENABLED=0 go build -o bin/x .", Ask},
	{"npm run build", Allow}, {"npm test -- --watch=false", Allow}, {"npm ci", Allow}, {"npx tsc --noEmit", Ask}, {"NODE_OPTIONS=--max-old-space-size=4096 npm run build", Ask}, {"yarn lint", Ask}, {"pnpm -r build", Ask},
	{"git status", Allow}, {"git diff --stat HEAD~1", Allow}, {"git log --oneline -5", Allow}, {"git add -A", Allow}, {"git commit -m \"x\"", Allow}, {"git commit -m \"fix: don't exec rm in tests\"", Allow}, {"git -C sub status", Ask}, {"git --no-pager log -3", Ask}, {"git -c user.name=x -c user.email=y commit -m z", Ask}, {"git -c core.pager=cat log", Ask}, {"git -c core.fsmonitor=false -c pager.log=false log", Ask}, {"git grep -n needle", Allow}, {"git show HEAD:go.mod", Allow}, {"git fetch origin && git checkout -b topic", Allow}, {"git stash list", Allow}, {"git blame -L 1,9 x.go", Allow}, {"git clone -b main https://example.com/x.git", Ask},
	{"make -j4", Allow}, {"make test CC=gcc", Allow}, {"FOO=bar make test", Ask}, {"make -C sub -f Makefile all", Allow}, {"cmake -B build -S .", Ask}, {"cmake --build build -j", Ask},
	{"python -m pytest -q", Allow}, {"PYTHONPATH=. python -m pytest -q -k 'a and b'", Ask}, {"pip install -r requirements.txt", Ask}, {"python3 script.py --out=x", Ask}, {"cargo test --all-features", Ask}, {"cargo build --release", Ask}, {"./gradlew test", Ask}, {"mvn -q test", Ask},
	{"ls -la | head", Allow}, {"for f in *.go; do wc -l \"$f\"; done", Allow}, {"find . -name '*.go' -type f | xargs wc -l", Ask}, {"find . -type f -newer x -print0", Ask}, {"grep -rn 'func Test' --include='*.go' .", Allow}, {"rg -n needle src", Allow}, {"sed -n '1,20p' x.go", Ask}, {"sed -i 's/a/b/g' x.go", Ask}, {"sed -e 's/x/y/' -e '/re/d' x", Ask}, {"awk '{print $1}' x | sort | uniq -c | sort -rn | head", Ask}, {"awk -F: '$3 > 100 {print $1}' x", Ask}, {"cat x.go | head -50", Allow}, {"wc -l $(git ls-files '*.go')", Allow},
	{"while IFS= read -r line; do echo \"$line\"; done < x", Ask}, {"mkdir -p out && cp x out/", Ask}, {"tar czf out.tgz src", Ask}, {"tar -xzf x.tgz -C out", Ask}, {"curl -fsSL https://example.com/x | jq .", Ask}, {"echo \"n: $((1 + 2))\"", Allow}, {"cd sub && go test ./...", Allow}, {"test -f go.mod && echo yes || echo no", Allow}, {"sort -u x -o y", Ask}, {"diff -u a b", Allow}, {"ps aux | grep node", Ask}, {"which go", Allow}, {"docker compose up -d", Ask}, {"timeout 60 go test ./x", Ask}, {"time go build", Ask}, {"export A=b; make", Ask}, {"env | sort", Ask}, {"vim -es x +q", Ask}, {"rsync -av a/ b/", Ask}, {"ssh -p 22 host uptime", Ask}, {"terraform plan -out=x", Ask}, {"kubectl get pods -n x", Ask}, {"bash script.sh", Ask}, {"bash -c 'go test ./...'", Ask}, {"eslint --fix 'src/**/*.ts'", Ask}, {"jq -r '.a | .b' x.json", Ask}, {"pkill -f server", Ask}, {"sleep 2; go test", Ask}, {"if [ -f x ]; then go test; else go vet; fi", Allow},
}

// TestEveryday holds that everyday commands stay what they were: covered by mode
// auto, and in mode default by the rules that name their programs.
func TestEveryday(t *testing.T) {
	w := newWorld(t)
	lines := []string{"deny bash(rm *)", "ask bash(git push*)", "ask bash(terraform apply*)", "deny read(**/.env)"}
	for _, p := range []string{"go *", "gofmt *", "npm *", "git status*", "git diff*", "git log*", "git add*", "git commit*", "git grep*", "git show*", "git fetch*", "git checkout -b *", "git stash list", "git blame*", "git ls-files*", "make*", "python -m pytest*", "ls*", "wc *", "grep *", "rg *", "cat *", "head*", "tail*", "echo *", "cd *", "test *", "[ *", "diff *", "which *"} {
		lines = append(lines, "allow bash("+p+")")
	}
	rs := rules(t, lines...)
	for _, c := range everyday {
		check(t, rs, w.auto(c.command), Allow, StepMode)
		step := StepDefault
		if c.byRule == Allow {
			step = StepAllowRule
		}
		in := w.bash(ModeDefault, c.command)
		in.Env.TierProcess = true // what no word tells, the sandbox hides
		check(t, rs, in, c.byRule, step)
	}
}
