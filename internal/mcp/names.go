package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const (
	namePrefix = "mcp__"
	nameSep    = "__"
	// maxName is the longest name that every model API takes.
	maxName = 64
	// maxSegment is the longest name of a server that stands in tool names as it is.
	maxSegment = 40
	// cutSegment and hashLen give the form of a longer or illegal one.
	cutSegment = 20
	hashLen    = 8
	// maxTries bounds the search for a free name.
	maxTries = 16
)

// legalName is what every model API and the grammar of rules accept.
var legalName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// checkName returns what is wrong with a server's name, or "".
func checkName(name string) string {
	switch {
	case name == "":
		return "it has no name; every server needs one"
	case strings.Contains(name, nameSep):
		return `its name holds "__", which separates server and tool in a rule; rename it`
	case strings.HasSuffix(name, "_"):
		return `its name ends in "_", so that its tools could be taken for those of another server; rename it`
	}
	return ""
}

// segment returns how a server's name stands in the names of its tools: as it is
// where that is legal and leaves room, else cut and with a hash, so that it is the
// name of no other server.
func segment(server string) string {
	if len(server) <= maxSegment && legalName.MatchString(server) {
		return server
	}
	return strings.TrimRight(legal(server, cutSegment), "_-") + "-" + digest(server)
}

// toolName returns the canonical name of a server's tool. A name that is legal as
// it is stays; any other is cut and ends in a hash of what it was. try counts the
// names that were found to be taken.
func toolName(server, tool string, try int) string {
	prefix := namePrefix + segment(server) + nameSep
	if try == 0 && tool != "" && len(prefix)+len(tool) <= maxName && legalName.MatchString(tool) {
		return prefix + tool
	}
	key := server + "\x00" + tool
	if try > 1 {
		key = fmt.Sprintf("%s\x00%d", key, try)
	}
	return prefix + legal(tool, maxName-len(prefix)-1-hashLen) + "_" + digest(key)
}

// legal returns the first bytes of a name with what isn't legal replaced, and
// without two underscores in a row.
func legal(s string, limit int) string {
	out := make([]byte, 0, limit)
	for i := 0; i < len(s) && len(out) < limit; i++ {
		c := s[i]
		if c >= 0x80 || !legalName.Match([]byte{c}) {
			c = '_'
		}
		if c != '_' || len(out) == 0 || out[len(out)-1] != '_' { // never nameSep
			out = append(out, c)
		}
	}
	return string(out)
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])[:hashLen]
}

// assignNames gives canonical names to the tools of one server. The result depends
// on the set of names alone: first those that stay as they are, then the others in
// order. A tool for which there is no free name isn't in the map.
func assignNames(server string, tools []string, taken map[string]bool) map[string]string {
	sorted := slices.Clone(tools)
	slices.Sort(sorted)
	out := make(map[string]string, len(sorted))
	used := map[string]bool{}
	for pass := range 2 {
		for _, t := range sorted {
			if _, done := out[t]; done {
				continue
			}
			for try := pass; try < maxTries; try++ {
				name := toolName(server, t, try)
				if pass == 0 && !strings.HasSuffix(name, nameSep+t) {
					break
				}
				if !used[name] && !taken[name] {
					used[name], out[t] = true, name
					break
				}
				if pass == 0 {
					break
				}
			}
		}
	}
	return out
}

// Rules returns the rules to compile instead of a rule of the settings: text
// itself unless it is about an MCP tool or server whose name had to be changed, as
// mcp__server__tool with the server's own name of the tool. Tools are known from
// the start, so the rules stay right for the host's life.
func (h *Host) Rules(text string) []string {
	if !strings.HasPrefix(text, namePrefix) {
		return []string{text}
	}
	for _, s := range h.servers {
		tool, ok := strings.CutPrefix(text, namePrefix+s.cfg.Name+nameSep)
		if !ok || tool == "" {
			continue
		}
		if tool == "*" {
			return []string{namePrefix + segment(s.cfg.Name) + nameSep + "*"}
		}
		for _, t := range s.tools {
			if t.original == tool {
				return []string{t.spec.Name}
			}
		}
		return []string{namePrefix + segment(s.cfg.Name) + nameSep + tool}
	}
	return []string{text}
}

// Servers returns the names of all servers, those that are down included, as they
// stand in the names of tools: policy.Known.MCPServers.
func (h *Host) Servers() []string {
	out := make([]string, 0, len(h.servers))
	for _, s := range h.servers {
		out = append(out, segment(s.cfg.Name))
	}
	return out
}

// Original returns whose tool a canonical name is, and what the server calls it.
func (h *Host) Original(name string) (server, tool string, ok bool) {
	t, ok := h.byName[name]
	if !ok {
		return "", "", false
	}
	return t.server.cfg.Name, t.original, true
}
