package policy

import "testing"

// TestRunOptions holds that a command in an option, a setting or a script of a
// program falls under the rules like any other.
func TestRunOptions(t *testing.T) {
	w := newWorld(t)
	rs := rules(t, "deny bash(rm *)", "deny write(/etc/**)", "ask bash(git push --force*)")
	for _, c := range []string{
		"TAR_OPTIONS='--to-command=rm' tar xf x", "RSYNC_RSH='rm x' rsync a b:c", "LESS='+!rm x' less y", "export LESS='-R +!rm x'", "SHELL=rm vim x", "ssh h -o ProxyCommand='rm x'", "fd -Hx rm", "fd -HIX rm", "compgen -C 'rm x'", "jobs -x rm x", "git svn --authors-prog=rm x", "git grep -O'rm' needle", "git grep -nOrm needle", "git grep --open-files-in-pager=rm x", "git grep --open=rm x", "git grep -O'rm -f' x", "git difftool --extcmd=rm", "git difftool --extc rm", "git difftool -x rm HEAD", "git difftool -xrm", "git difftool -yx rm",
		"git clone -u rm x y", "git clone --upload-pack=rm x", "git clone --upload-pack rm x", "git fetch --upload-pack='rm x' y", "git pull --upload-pack=rm", "git ls-remote --upload-pack=rm x", "git ls-remote --exec=rm x", "git fetch-pack --exec=rm x", "git push --receive-pack=rm x", "git push --exec=rm x", "git archive --remote=x --exec=rm", "git -C x clone --upload=rm y",
		"git clone 'ext::rm% x'", "git clone 'ext::sh -c rm% x'", "git fetch ext::'rm x'", "git remote add x 'ext::rm y'", "git submodule add 'ext::rm x' y", "git push 'ext::rm x'",
		"git -c core.pager=rm log", "git -c core.pager='rm x' log", "git -c pager.log=rm log", "git -c alias.x='!rm' x", "git -c alias.x='!f() { rm y; }; f' x", "git -c core.sshCommand='rm x' fetch", "git -c core.fsmonitor=rm status", "git -c core.editor=rm commit", "git -c sequence.editor=rm x", "git -c diff.external=rm diff", "git -c diff.x.textconv=rm diff", "git -c credential.helper='!rm x' fetch", "git -c gpg.program=rm commit -S", "git -c filter.x.smudge=rm checkout x", "git -c difftool.x.cmd='rm x' difftool", "git -c trailer.x.command=rm x", "git -c core.askPass=rm fetch", "git -c merge.x.driver='rm %A' merge x", "git clone -c core.sshCommand=rm x", "git clone --config core.fsmonitor=rm x", "git config core.pager rm", "git config --global core.editor 'rm x'", "git config set core.editor rm", "git config --file x alias.y '!rm z'", "git -c submodule.x.update='!rm y' submodule update", "git config core.sshCommand 'rm x'",
		"git filter-branch --tree-filter 'rm x'", "git rebase -x rm", "git rebase --exec=rm", "git bisect run rm x", "git submodule foreach --recursive rm x", "git send-email --to-cmd=rm x", "GIT_EXTERNAL_DIFF=rm git diff x", "GIT_SSH_COMMAND='rm x' git fetch", "MY_EDITOR='rm x' y",
		"mapfile -t -c1 -C rm a < list", "mapfile -Crm a <list", "readarray -c 1 -C 'rm -f' a", "fd -x rm", "fd x -x rm", "fd -xrm", "fd --exec rm", "fd --exec=rm x", "fd -X rm", "fdfind -e go -X rm {}", "fd x --exec-batch=rm", "find . -exec rm {} +",
		"vim -c '/x/!rm y'", "ed x <<< '/a/r !rm y'", "vim -c 's/a/b/|!rm x' y", "vim -c 'g#x#!rm y'", "vim -c $'w\n!rm x'", "vim -c 'e +!rm x'", "ed <<< '?a?w !rm x'", "vim -c '!rm x' y", "vim '+!rm x'", "vim --cmd '!rm x'", "vim -es -c '%!rm x'", "vi -c ':!rm x'", "nvim -c 'silent !rm x'", "vim -c 'r !rm x'", "vim -c 'w !rm x'", "vim -c 'w|!rm x'", "vim -c 'g/x/!rm y'", "ex -s x <<< '!rm y'", "ex x <<E\n%s/a/b/\n!rm y\nE", "vim -es x <<<'!rm y'", "ed <<< '!rm x'", "ed x <<'E'\n1d\nr !rm y\nw\nq\nE", "ed -s x <<<'e !rm y'", "less '+!rm x' y",
		"at now <<< 'rm x'", "batch <<E\nrm x\nE", "crontab - <<< '* * * * * rm x'", "crontab <<E\n@daily rm x\nE", "socat - EXEC:'rm x'", "socat - 'exec:rm x,pty'", "socat TCP-LISTEN:1 SYSTEM:'rm x'", "nc -e 'rm x' y 1", "ncat --sh-exec 'rm x' -l 1", "ncat --exec='rm x' y",
		"tar --to-command=rm -xf x", "tar xf x --to-command 'rm y'", "tar -cf x --checkpoint=1 --checkpoint-action=exec='rm x' y", "tar -Irm -xf x", "tar -I 'rm x' -xf y", "tar --use-compress-program='rm x' -cf y z", "tar --use='rm x' -cf y z", "tar cf x -F 'rm y' z", "rsync -e rm a b:c", "rsync --rsh='rm x' a b:c", "rsync -avze 'rm x' a b:c", "rsync --rsync-path='rm x' a b:c",
		"ssh -o ProxyCommand='rm x' h", "ssh -oProxyCommand='rm x' h", "ssh -o 'ProxyCommand rm x' h", "ssh -o proxycommand=rm\\ x h", "scp -o ProxyCommand='rm x' a h:b", "scp -S 'rm x' a h:b", "ssh -v -o PermitLocalCommand=yes -o LocalCommand='rm x' h", "sftp -o ProxyCommand='rm x' h",
		"awk 'BEGIN { system(\"rm x\") }'", "gawk 'BEGIN{system( \"rm x\" )}'", "awk '{print | \"rm x\"}' y", "awk 'BEGIN { \"rm x\" | getline y }'", "awk -F: '{ print $1 |& \"rm x\" }'", "awk -e 'BEGIN{system(\"rm x\")}'"[:0] + "gawk --source 'BEGIN{system(\"rm x\")}'", "sed 'e rm x' y", "sed '1e rm x' y", "sed -n '/a/e rm x' y", "sed -e 's/a/b/' -e '$!e rm x' y", "sed 's/a/b/;e rm x' y", "sed --expression='1{e rm x\n}' y", "sed '\\,a,e rm x' y",
		"sort --compress-program=rm x", "sort --compress='rm y' x", "man -P rm x", "man -P 'rm x' y", "man --pager='rm x' y", "split --filter='rm x' y", "rg --pre rm x", "rg --pre='rm y' x", "go test -exec rm ./...", "go test -exec='rm x' ./...", "go vet -vettool=rm ./...", "go build -toolexec 'rm x' ./...", "gdb -ex 'shell rm x' y", "gdb -batch -ex '!rm x'", "psql -c '\\! rm x'", "sqlite3 x '.shell rm y'", "gh alias set x '!rm y' --shell"[:0] + "gh alias set x '!rm y'", "gh config set pager 'rm x'", "wget --use-askpass=rm x", "zip -T -TT 'rm x' y z", "tcpdump -z rm -w x", "sed w/etc/x y", "sed -n '/a/w /etc/x' y", "sed 's/a/b/w /etc/x' y", "find . -fprintf /etc/x %p", "find . -fls /etc/x", "find . -fprint ../../../../../../../../etc/x",
	} {
		check(t, rs, w.bash(ModeBypass, c), Deny, StepDenyRule)
	}
	for _, c := range []string{
		"MAKEFLAGS='--eval=x' make", "TAR_OPTIONS=--to-command=$X tar x", "vim -c 'set shell=rm' x", "vim -c 'g#x#exe y'", "vim -c 'e +exe\\ x y'", "vim -c @a x", "vim -c 's/a/b/|exe x' y", "vim -c 'normal! :x' y", "vim -c 'normal @q' y", "vim -c 'norm! !!x' y", "vim -c 'set makeprg=rm' x", "gawk -v f=system 'BEGIN { @f(\"rm x\") }'", "gawk '@load \"x\"'", "zsh -c 'hash ls=/bin/rm; ls x'", "x CC=rm", "cargo --config 'build.rustc-wrapper=\"rm\"' build", "compgen -W '$(rm x)'", "git grep -O\"$X\" y", "git difftool --extcmd=$X", "git clone --upload-pack=$X y", "git clone \"ext::$X\"", "git -c core.pager=$X log", "git -c alias.x=\"$X\" x", "git -c $X log", "git config $X y", "git config core.pager \"$X\"", "git --exec-path=/x log", "git -c core.hooksPath=x commit", "git -c include.path=x log", "git -c protocol.ext.allow=always fetch", "git -c url.ext::x.insteadOf=y fetch",
		"mapfile -C \"$X\" a", "fd -x $X", "vim -c \"$X\"", "vim -c 'call system(\"x\")'", "vim -c 'exe \"x\"'", "vim -c 'py3 x'", "vim -c 's/x/\\=system(\"y\")/'", "vim -c 'source x'", "ed < x", "cat x | ed y", "{ ed y; } < x", "if ed y; then :; fi <<< '!rm x'", "ex -s y < x", "echo '!rm x' | ed", "make -f -", "make -f - <<< 'all:; rm x'", "make --file=/dev/stdin", "make -f <(echo x)", "make --eval='$(shell rm x)'", "make 'X=$(shell rm x)'", "make SHELL=./x", "make MAKEFLAGS=--eval=x", "at now < x", "echo rm x | at now", "crontab - < x", "cat x | crontab", "socat - EXEC:$X",
		"tar --to-command=\"$X\" -xf y", "tar cIf 'rm x' y z", "tar --checkpoint-action=\"$X\" x", "rsync -e \"$X\" a b:c", "ssh -o ProxyCommand=\"$X\" h", "ssh -o \"$X\" h", "awk 'BEGIN { system(x) }'", "awk 'BEGIN { c = \"rm x\"; print | c }'", "awk '{ \"rm \" $1 | getline }'", "sed 's/.*/rm x/e' y", "sed e y", "sed 's/a/b/ge' y", "sed -f - y", "sort --compress-program=$X y", "man -P \"$X\" y", "go test -exec $X", "gdb -ex 'python x'", "apt-get -o DPkg::Pre-Invoke::='rm x' install y", "x --hook=rm", "x '!rm y'", "docker run --entrypoint=rm y",
	} {
		check(t, rs, w.bash(ModeBypass, c), Ask, StepUnjudgeable)
	}
	for _, c := range []string{
		"MAKEFLAGS=-j4 make", "LESS=-R less x", "SHELL=/bin/zsh x", "awk '$2 ~ /@x.com/' y", "vim -c 'set nu' x", "vim -c 'normal gg=G' -c wq x", "fd -e txt -H", "jobs -l", "x --vcs=git", "x VCS=git", "compgen -A function", "git grep -n -e O x", "git grep --open-files-in-pager x", "git clone -b main x", "git clone -c core.autocrlf=false x", "git -c core.pager= log", "git -c color.ui=always diff", "git config user.name x", "git config --get core.pager", "git config core.pager less", "git -c credential.helper=cache fetch", "git -c core.hooksPath=/dev/null commit", "git commit -m 'ext: x'", "git log -O x"[:0] + "git rebase --abort", "git push --set-upstream origin x",
		"vim x", "vim +10 x", "vim +/foo x", "vim -c 'wq!' x", "vim -es -c '%s/a/b/g' -c wq x", "ed x", "ed x <<E\n1,3d\ns/a/b/\nw\nq\nE", "make -f x.mk all", "make CC=gcc V=1", "make SHELL=/bin/bash", "crontab -l", "at -l", "at now <<< 'ls x'", "socat - TCP:x:1", "tar czf x y", "tar -xf x --strip-components=1", "tar -caf x.tar.zst -I zstd y", "rsync -av --delete-excluded=x a b"[:0] + "rsync -e ssh a b:c", "ssh -o StrictHostKeyChecking=no h uptime", "ssh -o ProxyCommand=none h",
		"awk '{ print $1, $2 }' x", "awk '/a|b/ { n++ } END { print n }' x", "awk '$1 == \"x\" || $2 ~ /y/' z", "awk '{ print $1 | \"sort -n\" }' x", "awk -F'|' '{ print $2 }' x", "sed 's/a|b/c/g; s,x,y,' z", "sed -n '/start/,/end/p' x", "sed -i.bak -e '1d' -e '$a end' x", "sed '/we/d;y/abc/xyz/' x", "sed 's/[/]e/x/' y", "sed -E 's#(a)#\\1e#g' x", "sort -t, -k2 x", "man ls", "less +G x", "go test -run exec ./...", "gdb -batch -ex bt x", "fd -e go", "rg --pretty x", "find . -printf '%p\\n'",
	} {
		check(t, rs, w.bash(ModeBypass, c), Allow, StepMode)
	}
}

// TestWithoutGlobalOptions holds that deny and ask rules about a subcommand see it
// behind options that stand before it.
func TestWithoutGlobalOptions(t *testing.T) {
	w := newWorld(t)
	rs := rules(t, "ask bash(terraform apply*)", "deny bash(kubectl delete*)", "deny bash(git push*)", "deny bash(docker rm*)", "deny bash(tool drop *)", "allow bash(terraform *)")
	for c, want := range map[string]Verdict{
		"terraform -chdir=x apply": Ask, "terraform -chdir=x -no-color apply -auto-approve": Ask, "terraform plan": Allow, "terraform -chdir=x plan": Allow, "/usr/bin/terraform -chdir=x apply": Ask,
		"kubectl -n prod delete pod x": Deny, "kubectl --namespace prod --context=y delete pod x": Deny, "kubectl -v 9 delete x": Deny, "git -C x push": Deny, "git --no-pager -c a.b=c push": Deny, "docker --tlscacert x rm y": Deny, "docker -D rm y": Deny,
		"tool -a drop x": Deny, "tool -a b drop x": Deny, "tool -a -b c --d drop x": Deny, "tool --a=b drop x": Deny, "tool -- drop x": Deny, "sudo tool -v drop x": Deny,
	} {
		check(t, rs, w.bash(ModeDefault, c), want, "")
	}
	for _, c := range []string{"git -C push status", "git log push", "kubectl get delete", "tool x drop y", "docker ps"} {
		check(t, rs, w.bash(ModeBypass, c), Allow, StepMode)
	}
}
