package app

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/ahpconfig"
	"github.com/abhed/abhed/internal/config"
	"github.com/abhed/abhed/internal/policy"
)

// nameableTools returns the tools that a rule may name although no extension is
// running.
func nameableTools() map[string]policy.SubjectKind {
	tools := policy.AbhedTools()
	tools["jobs"], tools["recall"] = policy.SubjectText, policy.SubjectText
	return tools
}

// ruleFaults compiles the rules of the settings whose origin is accepted, those of
// the extensions' match too. A rule about a tool that only a running extension may
// bring can't be judged here: it is a warning.
func ruleFaults(s *config.Settings, sys System, here func(config.Origin) bool) (faults []settingsFault, warnings []string) {
	known := policy.Known{Tools: nameableTools()}
	for name := range s.MCP {
		known.MCPServers = append(known.MCPServers, name)
	}
	bring := bringTools(s)
	pick := func(rules []config.Rule) []config.Rule {
		return slices.DeleteFunc(slices.Clone(rules), func(r config.Rule) bool {
			if !here(r.Origin) {
				return true
			}
			tool, _, _ := strings.Cut(r.Text, "(")
			_, ours := known.Tools[tool]
			later := !ours && len(bring) > 0 && tool != "*" && !strings.HasPrefix(tool, "mcp__")
			if later {
				warnings = append(warnings, fmt.Sprintf("%s: whether %q is a tool shows only when %s", r.Origin, tool, strings.Join(bring, ", ")+" runs"))
			}
			return later
		})
	}
	lists := []policy.RuleLists{{
		Deny: restrictions(pick(s.Permissions.Deny), sys.home()), Ask: restrictions(pick(s.Permissions.Ask), sys.home()), Allow: ruleTexts(pick(s.Permissions.Allow)),
	}}
	for _, x := range s.Extensions {
		lists = append(lists, policy.RuleLists{Deny: ruleTexts(pick(x.Match))})
	}
	for _, l := range lists {
		_, found := policy.Compile(l, known)
		for _, p := range found {
			if p.Warning {
				warnings = append(warnings, p.Error())
				continue
			}
			o := p.Rule.Origin
			faults = append(faults, settingsFault{File: o.File, Line: o.Line, Column: o.Column, Key: o.Key, Message: p.Error()})
		}
	}
	return faults, warnings
}

// bringTools names the extensions that may bring tools of their own.
func bringTools(s *config.Settings) []string {
	var out []string
	for _, x := range s.Extensions {
		if x.Subscribes("list_tools") {
			out = append(out, fmt.Sprintf("extension %q", x.Name))
		}
	}
	return out
}

// checkRegistration refuses an AHP registration that can't be understood.
func checkRegistration(file string) error {
	data, err := readBounded(file, maxSettings)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s isn't there; expected the file that registers AHP backends", file)
		}
		return err
	}
	if _, err := ahp.DecodeRegistration(data); err != nil {
		return fmt.Errorf("%s: %w", ahpconfig.Place(file, data, err), err)
	}
	return nil
}
