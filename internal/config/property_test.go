package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/abhed/abhed/internal/strictjson"
)

// drawFile draws a settings file of the settings that have an order of
// strictness, each there or not.
func drawFile(t *rapid.T, label string) map[string]any {
	maybe := func(m map[string]any, key string, v any) {
		if rapid.Bool().Draw(t, label+"."+key+"?") {
			m[key] = v
		}
	}
	rules := func(key string) []string {
		return rapid.SliceOfN(rapid.SampledFrom([]string{"bash", "read(a)", "write(/x/**)", "*"}), 0, 3).Draw(t, label+"."+key)
	}
	permissions, sandbox, limits := map[string]any{}, map[string]any{}, map[string]any{}
	maybe(permissions, "mode", rapid.SampledFrom(Modes()).Draw(t, label+".mode"))
	maybe(permissions, "max_mode", rapid.SampledFrom(Modes()).Draw(t, label+".max_mode"))
	for _, list := range []string{"allow", "ask", "deny"} {
		maybe(permissions, list, rules(list))
	}
	maybe(sandbox, "network", rapid.Bool().Draw(t, label+".network"))
	maybe(sandbox, "min_tier", rapid.SampledFrom(Tiers()).Draw(t, label+".min_tier"))
	for _, limit := range []string{"max_turns", "max_tokens", "max_cost_usd", "max_seconds"} {
		maybe(limits, limit, rapid.IntRange(0, 5).Draw(t, label+"."+limit))
	}
	return map[string]any{"permissions": permissions, "sandbox": sandbox, "limits": limits}
}

func fileOf(t *rapid.T, layer Layer, settings map[string]any) Source {
	data, err := strictjson.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	src := file(layer, string(data))
	src.Trusted = layer == Project && rapid.Bool().Draw(t, "trusted")
	return src
}

// drawLower draws the sources below the managed one.
func drawLower(t *rapid.T) []Source {
	var flags []Arg
	if rapid.Bool().Draw(t, "flags?") {
		flags = []Arg{
			{"--mode", "permissions.mode", []string{rapid.SampledFrom(Modes()).Draw(t, "--mode")}},
			{"--max-turns", "limits.max_turns", []string{strconv.Itoa(rapid.IntRange(0, 5).Draw(t, "--max-turns"))}},
			{"--min-tier", "sandbox.min_tier", []string{rapid.SampledFrom(Tiers()).Draw(t, "--min-tier")}},
			{"--allow", "permissions.allow", []string{"bash"}},
		}
	}
	return []Source{args(flags...), environ("ABHED_BASE_URL=http://h", "ABHED_MODEL=m"), fileOf(t, User, drawFile(t, "user")), fileOf(t, Project, drawFile(t, "project"))}
}

func texts(rules []Rule) []string {
	var out []string
	for _, r := range rules {
		out = append(out, r.Text)
	}
	return out
}

// within reports whether limit is at least as strict as bound; 0 is no limit.
func within(limit, bound float64) bool { return bound == 0 || limit != 0 && limit <= bound }

// stricter returns what of b is less strict than in a, or "".
func stricter(a, b *Settings) string {
	rank := func(mode string) int { return slices.Index(Modes(), mode) }
	for _, pair := range [][2][]Rule{{a.Permissions.Ask, b.Permissions.Ask}, {a.Permissions.Deny, b.Permissions.Deny}} {
		for _, r := range texts(pair[0]) {
			if !slices.Contains(texts(pair[1]), r) {
				return "the rule " + r + " is gone"
			}
		}
	}
	limits := func(s *Settings) []float64 {
		return []float64{float64(s.Limits.MaxTurns), float64(s.Limits.MaxTokens), s.Limits.MaxCostUSD, float64(s.Limits.MaxSeconds)}
	}
	for i, bound := range limits(a) {
		if !within(limits(b)[i], bound) {
			return fmt.Sprintf("limit %d is %v, was %v", i, limits(b)[i], bound)
		}
	}
	switch {
	case rank(b.Permissions.Mode) > rank(a.Permissions.Mode):
		return "mode " + b.Permissions.Mode + ", was " + a.Permissions.Mode
	case rank(b.Permissions.MaxMode) > rank(a.Permissions.MaxMode):
		return "max_mode " + b.Permissions.MaxMode + ", was " + a.Permissions.MaxMode
	case rank(b.Permissions.Mode) > rank(b.Permissions.MaxMode):
		return "mode " + b.Permissions.Mode + " is above max_mode " + b.Permissions.MaxMode
	case b.Sandbox.Network && !a.Sandbox.Network:
		return "network is on"
	case slices.Index(Tiers(), b.Sandbox.MinTier) < slices.Index(Tiers(), a.Sandbox.MinTier):
		return "min_tier " + b.Sandbox.MinTier + ", was " + a.Sandbox.MinTier
	}
	return ""
}

// TestPropertyManagedHolds: whatever the lower layers say, each managed rule,
// mode, limit, tier and network setting holds, and adding a managed file never
// makes anything less strict (gate.md §4).
func TestPropertyManagedHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lower := drawLower(t)
		managed := drawFile(t, "managed")
		without, err := Load(lower)
		if err != nil {
			t.Fatal(err)
		}
		with, err := Load(append(slices.Clone(lower), fileOf(t, Managed, managed)))
		if err != nil {
			t.Fatal(err)
		}
		if what := stricter(without, with); what != "" {
			t.Fatalf("the managed file loosens: %s", what)
		}
		checkHeld(t, managed, with)
	})
}

func checkHeld(t *rapid.T, managed map[string]any, s *Settings) {
	permissions, limits, sandbox := managed["permissions"].(map[string]any), managed["limits"].(map[string]any), managed["sandbox"].(map[string]any)
	for key, have := range map[string][]Rule{"ask": s.Permissions.Ask, "deny": s.Permissions.Deny} {
		rules, _ := permissions[key].([]string)
		for _, r := range rules {
			if !slices.Contains(texts(have), r) {
				t.Fatalf("the managed %s rule %s is gone", key, r)
			}
		}
	}
	for _, key := range []string{"mode", "max_mode"} {
		if m, is := permissions[key].(string); is && slices.Index(Modes(), s.Permissions.Mode) > slices.Index(Modes(), m) {
			t.Fatalf("mode is %s, the managed %s %s", s.Permissions.Mode, key, m)
		}
	}
	for key, have := range map[string]float64{"max_turns": float64(s.Limits.MaxTurns), "max_tokens": float64(s.Limits.MaxTokens), "max_cost_usd": s.Limits.MaxCostUSD, "max_seconds": float64(s.Limits.MaxSeconds)} {
		if bound, is := limits[key].(int); is && !within(have, float64(bound)) {
			t.Fatalf("%s is %v, the managed bound %d", key, have, bound)
		}
	}
	if n, is := sandbox["network"].(bool); is && !n && s.Sandbox.Network {
		t.Fatal("the network is on, managed says off")
	}
	if tier, is := sandbox["min_tier"].(string); is && slices.Index(Tiers(), s.Sandbox.MinTier) < slices.Index(Tiers(), tier) {
		t.Fatalf("tier %s, managed says at least %s", s.Sandbox.MinTier, tier)
	}
}

// TestPropertyProjectOnlyTightens: an untrusted project file makes nothing less
// strict and adds no allow rule; a trusted one may only add allow rules.
func TestPropertyProjectOnlyTightens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := []Source{fileOf(t, User, drawFile(t, "user"))}
		without, err := Load(base)
		if err != nil {
			t.Fatal(err)
		}
		project := fileOf(t, Project, drawFile(t, "project"))
		with, err := Load(append(base, project))
		if err != nil {
			t.Fatal(err)
		}
		if what := stricter(without, with); what != "" {
			t.Fatalf("the project loosens: %s", what)
		}
		if !project.Trusted && len(with.Permissions.Allow) != len(without.Permissions.Allow) {
			t.Fatal("an untrusted project allows something")
		}
	})
}

// TestPropertyClean: cleaning keeps the length and every line end, and leaves
// plain JSON alone.
func TestPropertyClean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := []byte(strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"{", "}", "[", "]", ",", ":", `"a"`, `"/*"`, `"\""`, "//x", "/*", "*/", "\n", "\r\n", "1", " ", "é"})).Draw(t, "pieces"), ""))
		out, _ := clean(data)
		if len(out) != len(data) {
			t.Fatalf("%d bytes became %d", len(data), len(out))
		}
		for i, c := range data {
			if out[i] != c && (c == '\n' || c == '\r' || out[i] != ' ') {
				t.Fatalf("byte %d: %q became %q", i, c, out[i])
			}
		}
		if strictjson.Check(data, strictjson.Options{}) == nil && string(out) != string(data) {
			t.Fatalf("%q is JSON and became %q", data, out)
		}
	})
}

// FuzzLoad feeds every layer that has bytes. Load must not panic, must give
// either settings or faults with a place in the file, and what it accepts must
// explain itself.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(specExample))
	f.Add([]byte(byteOrderMark + "{\r\n/**/\"permissions\":{\"deny\":[\"bash(rm*)\",],},}"))
	f.Add([]byte(`{"mcp": {"a": {}}, "extensions": [{"name": "x", "command": "y"}], "model": "env/x"}`))
	f.Add([]byte(`{"a": 1, "a": 2}`))
	f.Add([]byte("{/*"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, layer := range []Layer{Managed, User, Project} {
			s, err := Load([]Source{{Layer: layer, File: "F", Dir: "/d", Data: data}, {Layer: Environment, Environ: []string{string(data), "ABHED_MODEL=" + string(data)}}})
			if err == nil {
				if _, err := s.Explain().JSON(); err != nil {
					t.Fatalf("explaining: %v", err)
				}
				if _, ok := s.Origin("permissions.mode"); !ok {
					t.Fatal("no origin of the mode")
				}
				continue
			}
			var faults *Errors
			if !errors.As(err, &faults) || s != nil {
				t.Fatalf("error %T: %v", err, err)
			}
			for _, e := range faults.List {
				if e.Found == "" || e.Origin.Line < 0 || e.Origin.Column < 0 || strings.ContainsAny(e.Error(), "\n\x00\x1b") {
					t.Fatalf("poor message %q", e.Error())
				}
			}
		}
	})
}
