package config

import (
	"cmp"
	"slices"

	"github.com/abhed/abhed/internal/strictjson"
)

// Load reads, checks and merges the sources, which may come in any order. Its
// error is an *Errors with every fault found, or another error if a Source was
// built wrongly; there are no Settings then.
func Load(sources []Source) (*Settings, error) {
	l := &loader{table: settingsSpec()}
	ordered := slices.Clone(sources)
	slices.SortStableFunc(ordered, func(a, b Source) int { return -cmp.Compare(a.Layer, b.Layer) })
	var read []layered
	var wary []*node // what applies of untrusted projects
	for i := range ordered {
		src := &ordered[i]
		root, err := l.read(src)
		if err != nil {
			return nil, err
		}
		read = append(read, layered{src.Layer, root})
		if root != nil && src.Layer == Project && !src.Trusted {
			wary = append(wary, root)
		}
	}
	if err := l.faults.err(); err != nil {
		return nil, err
	}
	merged := mergeAll(l.table, read)
	capMode(merged, read)
	for _, root := range wary {
		l.ignoreIdleLimits(root, merged)
	}
	return l.finish(merged)
}

// loader holds what is gathered while sources are read.
type loader struct {
	table    *spec
	faults   faults
	ignored  []Ignored
	warnings []Warning
	quick    QuickStart
}

// capMode makes max_mode the strictest mode that anything forces, and mode no
// less strict than that.
func capMode(merged *node, sources []layered) {
	permissions := merged.get("permissions")
	strict := byOrder(Modes(), false)
	ceiling := permissions.get("max_mode")
	for _, src := range sources {
		if m := src.root.get("permissions").get("mode"); m != nil && (src.layer == Managed || src.layer == Project) && strict(m) > strict(ceiling) {
			ceiling = m
		}
	}
	permissions.set("max_mode", ceiling)
	if strict(permissions.get("mode")) < strict(ceiling) {
		permissions.set("mode", ceiling)
	}
}

// finish turns the merged values into Settings and checks what needs several of
// them at once.
func (l *loader) finish(merged *node) (*Settings, error) {
	l.boundNetwork(merged)
	s := &Settings{merged: merged, QuickStart: l.quick, Ignored: l.ignored, Warnings: l.warnings}
	if err := strictjson.Unmarshal(merged.encode(nil), s, strictjson.Options{MaxDepth: maxNesting, MaxBytes: 1 << 30}); err != nil {
		return nil, err
	}
	permissions := merged.get("permissions")
	setOrigins(s.Permissions.Allow, permissions.get("allow"))
	setOrigins(s.Permissions.Ask, permissions.get("ask"))
	setOrigins(s.Permissions.Deny, permissions.get("deny"))
	for i := range s.Extensions {
		setOrigins(s.Extensions[i].Match, merged.get("extensions").elems[i].get("match"))
	}
	l.checkExtensions(merged.get("extensions"))
	l.checkProviders(s, merged)
	l.checkMCP(merged.get("mcp"))
	if err := l.faults.err(); err != nil {
		return nil, err
	}
	return s, nil
}

func setOrigins(rules []Rule, list *node) {
	for i := range rules {
		rules[i].Origin = list.elems[i].origin
	}
}

// checkExtensions refuses two extensions of one name in different sources: to
// drop either of them silently could drop a guard.
func (l *loader) checkExtensions(list *node) {
	if list == nil {
		return
	}
	(&checker{faults: &l.faults}).unique(list, l.table.field("extensions"))
}

// checkProviders checks the custom providers, and the configured model and
// sampling against the endpoint that they are for.
func (l *loader) checkProviders(s *Settings, merged *node) {
	for i, p := range s.Providers {
		n := merged.get("custom_providers").elems[i]
		switch base := n.get("base_url"); {
		case base == nil:
			l.faults.add(&Error{Origin: n.origin, Found: `no "base_url"`, Expected: `"base_url", which the API ` + quote(p.API) + " needs"})
		case p.API != APIScript:
			if want := endpointURL(p.BaseURL); want != "" {
				l.faults.add(&Error{Origin: base.origin, Found: foundURL(p.BaseURL), Expected: want})
			}
		}
		for j, name := range p.Sampling {
			if can := APISampling(p.API); !slices.Contains(can, name) {
				l.faults.add(&Error{Origin: n.get("sampling").elems[j].origin, Found: "the parameter " + quote(name) + ", which the API " + quote(p.API) + " of the provider " + quote(p.Name) + " can't send", Expected: oneOf(can)})
			}
		}
	}
	if s.Model == "" || len(l.faults.list) > 0 {
		return
	}
	endpoint, err := s.resolve("")
	if err != nil {
		l.faults.add(err)
		return
	}
	for _, e := range s.unhonoured(&endpoint) {
		l.faults.add(e)
	}
}
