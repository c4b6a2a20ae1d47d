package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Origin says where a rule was written.
type Origin struct {
	Column int `json:"column,omitzero"`
	// File is the settings file, or the name of another source ("command line").
	File string `json:"file,omitzero"`
	// Key is the setting, for example "permissions.deny[2]".
	Key string `json:"key,omitzero"`
	// Line and Column are from 1; zero means unknown.
	Line int `json:"line,omitzero"`
}

// String returns "file:line:column key" as far as known.
func (o Origin) String() string {
	s := o.File
	if o.Line > 0 {
		s += fmt.Sprintf(":%d", o.Line)
		if o.Column > 0 {
			s += fmt.Sprintf(":%d", o.Column)
		}
	}
	if o.Key != "" {
		s = strings.TrimPrefix(s+" "+o.Key, " ")
	}
	return s
}

// RuleText is one rule as written: `tool` or `tool(pattern)` (gate.md §3).
type RuleText struct {
	Origin Origin `json:"origin"`
	Text   string `json:"text"`
}

// RuleLists are the rules of all sources together; their order within a list
// decides only which of several matching rules is named.
type RuleLists struct {
	Deny  []RuleText `json:"deny"`
	Ask   []RuleText `json:"ask"`
	Allow []RuleText `json:"allow"`
}

// Known is what rules may name.
type Known struct {
	// Tools has the kind of subject of every tool by its canonical name.
	Tools map[string]SubjectKind `json:"tools"`
	// MCPServers are the configured servers, those that are down included. A
	// server none of whose tools is in Tools counts as down.
	MCPServers []string `json:"mcp_servers"`
}

// Problem is what is wrong with one rule.
type Problem struct {
	// Rule is the rule as written, with its origin.
	Rule RuleText
	// List is "deny", "ask" or "allow".
	List string
	// Msg says what was found and what was expected.
	Msg string
	// Warning reports that the rule stays in force; a problem that isn't a warning
	// must stop the start.
	Warning bool
}

// Error returns the problem with the place of the rule.
func (p *Problem) Error() string {
	kind := "error"
	if p.Warning {
		kind = "warning"
	}
	where := p.Rule.Origin.String()
	if where != "" {
		where += ": "
	}
	return fmt.Sprintf("%s%s: %s rule %q: %s", where, kind, p.List, p.Rule.Text, p.Msg)
}

// rule is a compiled rule. It is immutable.
type rule struct {
	ref  RuleRef
	tool toolMatch
	// bare reports that there is no pattern: every subject matches.
	bare bool
	// The pattern compiled for each kind of subject that the tool can have.
	text *pattern
	url  *pattern
	path *pathRule
}

// toolMatch says which tools a rule is about.
type toolMatch struct {
	any    bool
	name   string
	prefix string // of mcp__server__*
}

func (t toolMatch) matches(tool string) bool {
	return t.any || t.name != "" && t.name == tool ||
		t.prefix != "" && len(tool) > len(t.prefix) && strings.HasPrefix(tool, t.prefix)
}

// Compile compiles rules against what is known. It returns every problem that it
// found; if one of them isn't a warning the Ruleset is nil, so that a rule that
// is wrong is never simply missing.
func Compile(lists RuleLists, known Known) (*Ruleset, []Problem) {
	lists = RuleLists{Deny: slices.Clone(lists.Deny), Ask: slices.Clone(lists.Ask), Allow: slices.Clone(lists.Allow)}
	known = Known{Tools: maps.Clone(known.Tools), MCPServers: slices.Clone(known.MCPServers)}
	c := compiler{known: known}
	rs := &Ruleset{
		lists: lists, known: known,
		deny:  c.list("deny", lists.Deny),
		ask:   c.list("ask", lists.Ask),
		allow: c.list("allow", lists.Allow),
	}
	if c.failed {
		return nil, c.problems
	}
	if err := rs.finish(); err != nil {
		c.fail(Problem{Msg: err.Error()})
		return nil, c.problems
	}
	return rs, c.problems
}

// compiler collects the problems of one Compile.
type compiler struct {
	known    Known
	problems []Problem
	failed   bool
}

func (c *compiler) fail(p Problem) {
	c.problems = append(c.problems, p)
	c.failed = c.failed || !p.Warning
}

func (c *compiler) list(list string, texts []RuleText) []*rule {
	out := make([]*rule, 0, len(texts))
	for _, t := range texts {
		r, msg, warning := c.rule(t.Text)
		for _, w := range warning {
			c.fail(Problem{Rule: t, List: list, Msg: w, Warning: true})
		}
		if msg != "" {
			c.fail(Problem{Rule: t, List: list, Msg: msg})
			continue
		}
		r.ref = RuleRef{List: list, RuleText: t}
		out = append(out, r)
	}
	return out
}

// split parses `tool` or `tool(pattern)`.
func split(text string) (tool, pat string, hasPattern bool, msg string) {
	if text == "" || strings.TrimSpace(text) != text {
		return "", "", false, "expected tool or tool(pattern) without white space around it"
	}
	tool, rest, hasPattern := strings.Cut(text, "(")
	if !hasPattern {
		if strings.Contains(tool, ")") {
			return "", "", false, `")" without "("; expected tool or tool(pattern)`
		}
		return tool, "", false, ""
	}
	pat, closed := strings.CutSuffix(rest, ")")
	switch {
	case tool == "":
		return "", "", false, `the name of a tool is missing before "("; "*" stands for any tool`
	case !closed:
		return "", "", false, `the last ")" is missing; expected tool(pattern)`
	case pat == "":
		return "", "", false, fmt.Sprintf("the pattern is empty and can never match; write %q for every call", tool)
	}
	for _, r := range pat {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r == '\uFFFD' {
			return "", "", false, fmt.Sprintf("the pattern holds the character %U, which is never matched", r)
		}
	}
	return tool, pat, true, checkEscapes(pat)
}

// rule compiles one rule. msg is what is wrong with it, or "".
func (c *compiler) rule(text string) (r *rule, msg string, warnings []string) {
	tool, pat, hasPattern, msg := split(text)
	if msg != "" {
		return nil, msg, nil
	}
	match, kinds, msg, warnings := c.tool(tool)
	if msg != "" {
		return nil, msg, warnings
	}
	r = &rule{tool: match, bare: !hasPattern}
	if !hasPattern {
		return r, "", warnings
	}
	if match.prefix != "" || strings.HasPrefix(tool, mcpPrefix) {
		return nil, "an MCP rule takes no pattern; expected mcp__server__tool or mcp__server__*", nil
	}
	return c.pattern(r, tool, pat, kinds, warnings)
}

// pattern compiles pat for each kind of subject that the rule can meet.
func (c *compiler) pattern(r *rule, tool, pat string, kinds kindSet, warnings []string) (*rule, string, []string) {
	if pat == "*" || pat == "**" {
		if kinds == kindSet(0).with(SubjectNone) {
			return nil, fmt.Sprintf("%s has no subject, so a pattern can never match; write %q", tool, tool), nil
		}
		// A lone star is about every subject; only a path pattern's single star
		// stops at a slash.
		r.bare = pat == "**" || !kinds.has(SubjectPath)
	}
	var faults []string
	fits := false
	// Every form that the pattern can have is compiled: a tool may declare for one
	// call another kind of subject than it is known for.
	try := func(kind SubjectKind, fault string, set func()) {
		switch {
		case fault == "":
			fits = fits || kinds.has(kind)
			set()
		case kinds.has(kind):
			faults = append(faults, fault)
		}
	}
	try(SubjectCommand, commandPatternFault(pat), func() { r.text = compileText(foldName(pat, false)) })
	try(SubjectText, "", func() { r.text = compileText(foldName(pat, false)) })
	try(SubjectPath, pathPatternFault(pat), func() { r.path = compilePathRule(pat) })
	try(SubjectURL, urlPatternFault(pat), func() { r.url = compileURLPattern(pat) })
	switch {
	case kinds.has(SubjectPath) && alternatives(pat):
		return nil, pathPatternFault(pat), nil // it fits something else, and silently no path
	case !fits && len(faults) > 0:
		return nil, faults[0], nil
	case !fits:
		return nil, fmt.Sprintf("%s has no subject, so a pattern can never match; write %q", tool, tool), nil
	}
	if kinds.has(SubjectCommand) {
		if w := commandPatternWarning(pat); w != "" {
			warnings = append(warnings, w)
		}
	}
	return r, "", warnings
}

// kindSet is a set of subject kinds.
type kindSet uint8

func (s kindSet) with(k SubjectKind) kindSet { return s | 1<<k }
func (s kindSet) has(k SubjectKind) bool     { return s&(1<<k) != 0 }

const mcpPrefix = "mcp__"

// tool finds out which tools a rule names, and what subjects they have.
func (c *compiler) tool(name string) (m toolMatch, kinds kindSet, msg string, warnings []string) {
	if name == "*" {
		for _, k := range c.known.Tools {
			kinds = kinds.with(k)
		}
		return toolMatch{any: true}, kinds, "", nil
	}
	if k, ok := c.known.Tools[name]; ok {
		return toolMatch{name: name}, kinds.with(k), "", nil
	}
	if rest, ok := strings.CutPrefix(name, mcpPrefix); ok {
		return c.mcp(name, rest)
	}
	if strings.ContainsAny(name, "*?") {
		return m, 0, `a tool is named whole; only "*" (any tool) and mcp__server__* are patterns`, nil
	}
	return m, 0, fmt.Sprintf("there is no tool %q%s", name, suggest(name, c.toolNames())), nil
}

func (c *compiler) mcp(name, rest string) (m toolMatch, kinds kindSet, msg string, warnings []string) {
	server, tool, ok := strings.Cut(rest, "__")
	if !ok || server == "" || tool == "" {
		return m, 0, "an MCP rule is mcp__server__tool or mcp__server__*", nil
	}
	if strings.ContainsAny(server, "*?") || tool != "*" && strings.ContainsAny(tool, "*?") {
		return m, 0, `an MCP rule is mcp__server__tool or mcp__server__*; names are written whole`, nil
	}
	configured := false
	for _, s := range c.known.MCPServers {
		configured = configured || s == server
	}
	if !configured {
		return m, 0, fmt.Sprintf("there is no MCP server %q%s", server, suggest(server, c.known.MCPServers)), nil
	}
	prefix := mcpPrefix + server + "__"
	var tools []string
	for t := range c.known.Tools {
		if strings.HasPrefix(t, prefix) {
			tools = append(tools, t)
		}
	}
	kinds = kinds.with(SubjectText)
	if len(tools) == 0 {
		warnings = []string{fmt.Sprintf("MCP server %q offers no tool now (it may be down), so the rule can't be checked", server)}
	}
	if tool == "*" {
		return toolMatch{prefix: prefix}, kinds, "", warnings
	}
	if len(tools) > 0 {
		return m, 0, fmt.Sprintf("MCP server %q has no tool %q%s", server, tool, suggest(name, tools)), nil
	}
	return toolMatch{name: name}, kinds, "", warnings
}
