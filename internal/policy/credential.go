package policy

import (
	"slices"
	"strings"
	"sync"
)

// credentialRead is the row of destructive.go for programs that print secrets.
func credentialRead(c *commandView) hit {
	switch c.program {
	case "gh", "glab":
		return both(c.is("auth"), either(anyWord(c.rest, "token"), scanAll(c.rest, "").has("t", "show-token")))
	case "gcloud":
		return both(c.is("auth", "secrets"), anyWord(c.rest, "print-access-token", "print-identity-token", "access"))
	case "aws":
		return either(either(both(c.is("configure"), anyWord(c.rest, "get", "export-credentials")), both(c.is("sts"), anyWord(c.rest, "get-session-token", "assume-role"))),
			either(both(c.is("secretsmanager"), anyWord(c.rest, "get-secret-value")), both(c.is("ssm", "ecr"), anyWord(c.rest, "get-parameter", "get-parameters", "get-login-password"))))
	case "az":
		return either(both(c.is("account"), anyWord(c.rest, "get-access-token")), both(c.is("keyvault"), anyWord(c.rest, "show", "download")))
	case "security":
		return c.is("find-generic-password", "find-internet-password", "dump-keychain", "export", "find-key")
	case "pass", "op", "bw", "lpass", "doppler", "keyring", "vault":
		if c.is("ls", "list", "find", "status", "help", "version", "login", "signin", "generate") == hitYes {
			return hitNo
		}
		return hitYes
	case "kubectl":
		return both(c.is("get", "describe", "config"), anyWord(c.rest, "secret", "secrets", "--raw"))
	case "git":
		return both(c.is("credential", "credential-store", "credential-cache", "credential-osxkeychain"), hitYes)
	case "secret-tool":
		return c.is("lookup", "search")
	case "gpg":
		return scanAll(c.args, "").has("", "export-secret-keys", "export-secret-subkeys")
	case "ssh-add":
		return scanAll(c.args, "").has("L", "")
	case "heroku":
		return c.is("auth:token", "config", "config:get")
	case "npm":
		return both(c.is("token", "config"), anyWord(c.rest, "list", "ls", "//registry.npmjs.org/:_authToken"))
	}
	return hitYes // the credential helpers of git and docker
}

// credentialPaths are files that hold secrets, as patterns of their absolute
// path. They are compiled when a path is met that may be one, and never changed.
var credentialPaths = sync.OnceValue(func() []*pattern {
	return compileAll(
		"**/.ssh/id_*", "**/.ssh/*.pem", "**/.ssh/*_key", "**/.ssh/identity", "**/.aws/credentials", "**/.aws/sso/cache/**", "**/.netrc", "**/_netrc",
		"**/.git-credentials", "**/.config/git/credentials", "**/.docker/config.json", "**/.kube/config", "**/.npmrc", "**/.pypirc", "**/.gem/credentials",
		"**/.cargo/credentials*", "**/.gnupg/private-keys*/**", "**/.gnupg/secring*", "**/.config/gh/hosts.yml", "**/.config/gcloud/*credential*", "**/.config/gcloud/access_tokens*",
		"**/.azure/*oken*", "**/.password-store/**", "**/.vault-token", "**/.terraform.d/credentials*", "**/.config/op/**", "**/.local/share/keyrings/**",
		"**/Library/Keychains/**", "**/.pgpass", "**/.my.cnf", "/etc/shadow*", "/etc/gshadow*", "/etc/sudoers*", "/etc/ssh/ssh_host_*_key", "/etc/krb5.keytab",
		"/proc/*/environ", "/proc/*/task/*/environ", "/run/secrets/**", "/var/run/secrets/**", "/run/credentials/**",
		"**/.config/google-chrome/**/Login Data", "**/.mozilla/firefox/**/logins.json", "**/.mozilla/firefox/**/key4.db",
	)
})

func compileAll(patterns ...string) []*pattern {
	var out []*pattern
	for _, p := range patterns {
		out = append(out, compilePathPattern(p)...)
	}
	return out
}

// credentialPath says whether an absolute path is a file of secrets. Public keys
// aren't.
func credentialPath(p string) hit {
	if strings.HasSuffix(p, ".pub") {
		return hitNo
	}
	if !mayBeCredential(p) {
		return credentialGlob(p)
	}
	for _, c := range credentialPaths() {
		if c.matches(p) {
			return hitYes
		}
	}
	if strings.ContainsAny(p, unknownBytes) {
		for _, c := range credentialPaths() {
			if c.possible(p) {
				return hitMaybe
			}
		}
	}
	return hitNo
}

// rootedCredentials are those of credentialPaths that begin at the root directory.
// It is never changed.
var rootedCredentials = sync.OnceValue(func() []*pattern {
	return slices.DeleteFunc(slices.Clone(credentialPaths()), func(p *pattern) bool { return !strings.HasPrefix(p.prefix, "/") })
})

// credentialGlob says whether an absolute path may be a file of secrets although
// the names that lead there aren't known: "/e*/shadow". The others of the table
// are in folders whose name begins with a dot, which a glob doesn't stand for.
func credentialGlob(p string) hit {
	if len(p) < 2 || p[0] != '/' || p[1] == anyText || !strings.ContainsAny(p, unknownBytes) {
		return hitNo // of a path that is wholly unknown nothing is said
	}
	if slices.ContainsFunc(rootedCredentials(), func(c *pattern) bool { return c.possible(p) }) {
		return hitMaybe
	}
	return hitNo
}

// mayBeCredential is a quick look that keeps most words from the patterns: each
// of them holds one of these, and a word that is wholly unknown says nothing.
func mayBeCredential(p string) bool {
	return strings.Contains(p, "/.") || strings.Contains(p, "netrc") || strings.HasPrefix(p, "/etc/") || strings.HasPrefix(p, "/proc/") ||
		strings.HasPrefix(p, "/run/") || strings.HasPrefix(p, "/var/run/") || strings.Contains(p, "Library/Keychains")
}
