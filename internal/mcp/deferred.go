package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool"
)

// searchName is the name of the tool that describes the deferred ones.
const searchName = "mcp_tools"

// maxFound is how many tools a search shows.
const maxFound = 40

// applyBudget defers the tools, in order of their names, that don't fit into the
// budget any more.
func (h *Host) applyBudget() {
	if h.opts.BudgetTokens < 0 {
		return
	}
	spent := 0
	for _, t := range h.tools {
		spent += (len(t.spec.Name) + len(t.spec.Description) + len(t.spec.Schema) + 3) / 4
		if spent > h.opts.BudgetTokens {
			h.deferred[t.spec.Name] = true
		}
	}
}

// Deferred reports whether the tool of that name is one that the model isn't told
// of at the start.
func (h *Host) Deferred(name string) bool { return h.deferred[name] }

// Offers reports whether the tool of that name is one of Tools.
func (h *Host) Offers(name string) bool {
	return h.byName[name] != nil || name == searchName && len(h.deferred) > 0
}

// Loaded returns the names of the deferred tools that the model has asked for, in
// that order. The list only grows; when it has grown, the specs of the next request
// are those of Listed.
func (h *Host) Loaded() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.loaded)
}

// Listed returns the specs to send with the next request: what fits the budget,
// mcp_tools if anything doesn't, and what was loaded, in an order of which the
// beginning stays the same. Every tool is called by its own name and judged by it,
// also one that isn't listed.
func (h *Host) Listed() []tool.Spec {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []tool.Spec
	add := func(t *serverTool) {
		if h.quarantined[t.spec.Name] == "" {
			out = append(out, t.spec)
		}
	}
	for _, t := range h.tools {
		if !h.deferred[t.spec.Name] {
			add(t)
		}
	}
	if len(h.deferred) > 0 {
		out = append(out, (&searchTool{h}).Spec())
	}
	for _, name := range h.loaded {
		add(h.byName[name])
	}
	return out
}

// Quarantine takes a tool out of what is listed and refuses its calls for the rest
// of the session, for example because a model's API rejects its schema. It reports
// whether there is such a tool.
func (h *Host) Quarantine(name, reason string) bool {
	t, ok := h.byName[name]
	if !ok {
		return false
	}
	h.mu.Lock()
	h.quarantined[name] = reason
	h.mu.Unlock()
	t.server.remark(fmt.Sprintf("its tool %s is left out from now on: %s", quoted(t.original), reason))
	return true
}

func (h *Host) quarantine(name string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.quarantined[name]
}

// load makes a deferred tool listed.
func (h *Host) load(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.deferred[name] && !slices.Contains(h.loaded, name) {
		h.loaded = append(h.loaded, name)
	}
}

// searchTool lists, finds and describes deferred tools. It runs none: that would
// put its own name before the gate instead of theirs.
type searchTool struct{ host *Host }

var _ tool.Tool = (*searchTool)(nil)

// searchArgs are the arguments of mcp_tools.
type searchArgs struct {
	Query string `json:"query"`
	Name  string `json:"name"`
}

// Spec describes the tool.
func (s *searchTool) Spec() tool.Spec {
	return tool.Spec{
		Name: searchName, Version: "1",
		Description: fmt.Sprintf("Lists the %d further tools of MCP servers that are not described here. Without arguments all of them; with query those in whose name or description every word occurs; with name one of them with its schema, after which you can call it by that name.", len(s.host.deferred)),
		Schema:      []byte(`{"type":"object","properties":{"query":{"type":"string","description":"Words to look for."},"name":{"type":"string","description":"The full name of one tool, to load it."}},"additionalProperties":false}`),
	}
}

// Declare says that it changes nothing.
func (s *searchTool) Declare([]byte) policy.Declaration {
	return policy.Declaration{Kind: policy.SubjectNone}
}

// Run answers from memory.
func (s *searchTool) Run(_ context.Context, g tool.Grant) (tool.Result, error) {
	args, err := tool.Decode[searchArgs](g.Args())
	if err != nil {
		return tool.Result{}, err
	}
	if args.Name != "" {
		return s.describe(args.Name), nil
	}
	return s.find(args.Query), nil
}

func (s *searchTool) describe(name string) tool.Result {
	t, ok := s.host.byName[name]
	if !ok {
		return tool.Fail(fmt.Sprintf("There is no MCP tool named %q. Call %s without name to see what there is.", cut(name, maxName), searchName))
	}
	if why := s.host.quarantine(name); why != "" {
		return tool.Fail(fmt.Sprintf("The tool %s can't be used in this session: %s.", name, why))
	}
	s.host.load(name)
	return tool.OK(fmt.Sprintf("%s\n%s\n\nArguments (JSON Schema): %s\n\nYou can now call %s by that name.", t.spec.Name, t.spec.Description, t.spec.Schema, t.spec.Name))
}

func (s *searchTool) find(query string) tool.Result {
	words := strings.Fields(strings.ToLower(query))
	var lines []string
	for _, t := range s.host.tools {
		if !s.host.deferred[t.spec.Name] {
			continue
		}
		text := strings.ToLower(t.spec.Name + " " + t.spec.Description)
		if slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
			continue
		}
		first, _, _ := strings.Cut(strings.TrimSpace(t.spec.Description), "\n")
		lines = append(lines, t.spec.Name+": "+cut(first, 160))
	}
	if len(lines) == 0 {
		return tool.OK(fmt.Sprintf("No tool fits %q. Call %s without arguments to see all.", cut(query, 200), searchName))
	}
	more := ""
	if n := len(lines) - maxFound; n > 0 {
		lines, more = lines[:maxFound], fmt.Sprintf("\n… and %d more; narrow it down with query.", n)
	}
	return tool.OK(strings.Join(lines, "\n") + more + fmt.Sprintf("\nCall %s with name to load one.", searchName))
}
