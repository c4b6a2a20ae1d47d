package app_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/app"
	"github.com/abhed/abhed/internal/config"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/strictjson"
)

// TestProviders holds for each kind of provider what is said of its key and of what is
// missing, and that a session's own list is the same.
func TestProviders(t *testing.T) {
	d := newDesk(t)
	d.put("there.json", `{"steps": []}`)
	d.user(`{"model": "played/x", "custom_providers": [
 {"name": "ours", "api": "anthropic", "base_url": "https://llm.example", "api_key_env": "OURS_KEY", "headers_env": {"X-Team": "TEAM", "X-Site": "SITE"}},
 {"name": "played", "api": "script", "base_url": "` + d.dir + `/there.json"},
 {"name": "lost", "api": "script", "base_url": "` + d.dir + `/gone.json"}]}`)
	d.env = append(d.env, "ABHED_BASE_URL=http://127.0.0.1:1/v1", "ABHED_API_KEY=hush-hush", "GROQ_API_KEY=hush-hush", "SITE=here", "XAI_API_KEY=")
	want := map[string]struct {
		hasKey  bool
		missing []string
	}{
		"env":          {true, nil},
		"ours":         {false, []string{"the variable OURS_KEY isn't set", "the header X-Team: the variable TEAM isn't set"}},
		"played":       {false, nil},
		"lost":         {false, []string{"the script: ", "gone.json"}},
		"groq":         {true, nil},
		"xai":          {false, []string{"the variable XAI_API_KEY isn't set"}}, // an empty variable is none
		"ollama":       {false, nil},
		"azure-openai": {false, []string{"custom_providers"}},
	}
	o := app.SettingsOptions{Dir: d.dir}
	code, out, errs := d.do(func(s app.System) int { return app.Providers(o, true, s) })
	if code != 0 || strings.Contains(out, "hush") {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	var list []control.Provider
	for line := range strings.Lines(out) {
		var p control.Provider
		if err := strictjson.Unmarshal([]byte(line), &p, strictjson.Options{}); err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
		w, ok := want[p.Name]
		if !ok {
			continue
		}
		delete(want, p.Name)
		if p.HasKey != w.hasKey || (p.Missing == "") != (w.missing == nil) {
			t.Errorf("%s: key %t, missing %q", p.Name, p.HasKey, p.Missing)
		}
		wantLines(t, p.Missing, w.missing...)
		if strings.Contains(p.Missing, "SITE") {
			t.Errorf("%s: what is set is missing: %s", p.Name, p.Missing)
		}
	}
	if len(want) > 0 || len(list) != len(config.BuiltinProviders())+4 {
		t.Errorf("%d providers; not listed: %v", len(list), want)
	}
	var session []control.Provider
	d.do(func(s app.System) int {
		var err error
		if session, err = app.NewHost(app.HostOptions{SettingsOptions: o}, s).Providers(""); err != nil {
			t.Error(err)
		}
		return 0
	})
	if !slices.EqualFunc(list, session, func(a, b control.Provider) bool {
		return a.Name == b.Name && a.HasKey == b.HasKey && a.Missing == b.Missing
	}) {
		t.Errorf("a session has other providers: %+v", session)
	}
	_, out, _ = d.do(func(s app.System) int { return app.Providers(o, false, s) })
	wantLines(t, out, "* played ", "  lost ", "missing  the script: ")
}

// TestProvidersNeedSettings holds that settings at fault list nothing.
func TestProvidersNeedSettings(t *testing.T) {
	d := newDesk(t)
	d.user(`{"custom_providers": [{"name": "openai", "api": "openai", "base_url": "https://x.example"}]}`)
	code, out, errs := d.do(func(s app.System) int { return app.Providers(app.SettingsOptions{Dir: d.dir}, false, s) })
	if code != 2 || out != "" || !strings.Contains(errs, "config.json:1:32") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}
