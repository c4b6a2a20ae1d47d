package ahp

import (
	"bytes"
	"math"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// LintSecrets returns where a registration seems to hold a secret itself, in any
// member, known or not, in the order of the text (§29, A5): at most 100 places. What
// isn't valid JSON is judged up to its fault.
func LintSecrets(data []byte) []*Error {
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	var found []*Error
	name, previous := "", ""
	for len(found) < 100 {
		if dec.PeekKind() != '"' {
			if _, err := dec.ReadToken(); err != nil {
				return found // the end, if the text was valid
			}
			previous = ""
			continue
		}
		raw, err := dec.ReadValue()
		if err != nil {
			return found
		}
		text, err := unquoted(raw)
		if err != nil {
			return found
		}
		kind, length := dec.StackIndex(dec.StackDepth())
		value := string(text)
		if kind == '{' && length%2 == 1 {
			name, previous = value, ""
			continue
		}
		inArgs := kind == '[' && name == "args"
		if why := secretIn(name, value, inArgs, previous); why != "" {
			found = append(found, &Error{Kind: KindShape, Pointer: string(dec.StackPointer()), Offset: dec.InputOffset() - int64(len(raw)), Found: why,
				Expected: "a reference to the secret, such as tokenEnv", Requirement: "AHP-SEC-001"})
		}
		previous = ""
		if inArgs {
			previous = value
		}
	}
	return found
}

// secretIn says why value looks like a secret, or "". previous is the argument
// before value.
func secretIn(name, value string, inArgs bool, previous string) string {
	if value == "" {
		return ""
	}
	if isSecretName(name) {
		return "a literal " + quote(name)
	}
	if inArgs {
		flag, v, ok := strings.Cut(value, "=")
		if ok && v != "" && strings.HasPrefix(flag, "-") && isSecretName(strings.TrimLeft(flag, "-")) {
			return "a literal secret in the argument " + quote(flag)
		}
		if strings.HasPrefix(previous, "-") && !strings.HasPrefix(value, "-") && isSecretName(strings.TrimLeft(previous, "-")) {
			return "a literal secret after the argument " + quote(previous)
		}
	}
	if i := strings.Index(value, "://"); i >= 0 {
		authority, _, _ := strings.Cut(value[i+3:], "/")
		if user, _, ok := strings.Cut(authority, "@"); ok && strings.Contains(user, ":") {
			return "a URL with a password"
		}
	}
	lower := strings.ToLower(value)
	if strings.Contains(lower, "authorization:") || strings.HasPrefix(lower, "bearer ") || strings.HasPrefix(lower, "basic ") {
		return "an authorization header"
	}
	for word := range strings.FieldsFuncSeq(value, func(r rune) bool { return strings.ContainsRune(" \t=:,;/?&\"'", r) }) {
		if hasSecretPrefix(word) || isHighEntropy(word) && !isFilePath(value) {
			return "a text that looks like a secret (" + itoa(len(word)) + " characters)"
		}
	}
	return ""
}

// isFilePath reports whether s is written as a path: a folder's name may look as
// random as it likes.
func isFilePath(s string) bool {
	return strings.HasPrefix(s, "/") || strings.HasPrefix(s, "./") || strings.HasPrefix(s, "../") || strings.HasPrefix(s, "~/")
}

// isSecretName reports whether a member or option of this name holds a secret;
// names that end in Env or Ref refer to one.
func isSecretName(name string) bool {
	flat := strings.ToLower(strings.ReplaceAll(strings.ReplaceAll(name, "-", ""), "_", ""))
	switch flat {
	case "token", "secret", "password", "passwd", "authorization", "apikey", "accesstoken", "refreshtoken",
		"bearertoken", "authtoken", "clientsecret", "privatekey", "credential", "credentials":
		return true
	}
	return false
}

func hasSecretPrefix(s string) bool {
	for _, p := range []string{"sk-", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "AKIA", "ASIA", "AIza", "eyJ"} {
		if strings.HasPrefix(s, p) && len(s) >= 20 {
			return true
		}
	}
	return false
}

// isHighEntropy reports whether s is long and mixes letters of both cases and
// digits so evenly that it is hardly a name: UUIDs, hex hashes and words pass.
func isHighEntropy(s string) bool {
	if len(s) < 28 {
		return false
	}
	var count [256]int
	var upper, lower, digit bool
	for i := range len(s) {
		c := s[i]
		switch {
		case 'A' <= c && c <= 'Z':
			upper = true
		case 'a' <= c && c <= 'z':
			lower = true
		case isDigit(c):
			digit = true
		case c != '+' && c != '-' && c != '_' && c != '.' && c != '~':
			return false
		}
		count[c]++
	}
	if !upper || !lower || !digit {
		return false
	}
	bits := 0.0
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(s))
			bits -= p * math.Log2(p)
		}
	}
	return bits >= 4
}
