package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/abhed/abhed/internal/hostconf"
	"github.com/abhed/abhed/internal/proc"
	"github.com/abhed/abhed/internal/strictjson"
)

// program is the name of a host's command.
func program(host string) string {
	switch host {
	case "claude-code":
		return "claude"
	case "cursor":
		return "cursor-agent"
	case "kiro":
		return "kiro-cli"
	case "continue":
		return "cn"
	}
	return host
}

// version compares a host's version with those that were measured.
func (d *doctor) version(ctx context.Context, h hostconf.Host) {
	found, how := d.findVersion(ctx, h)
	measured := d.o.Measured(h.Name)
	f := Finding{Host: h.Name, Level: Note, Check: "version"}
	switch {
	case found == "" && !d.o.Versions:
		f.What = "its version is unknown: " + how + "; --versions asks the program itself"
	case found == "":
		f.What = "its version is unknown: " + how
	case slices.Contains(measured, found):
		f.Level, f.What = OK, fmt.Sprintf("version %s (%s) was measured", found, how)
	case len(measured) == 0:
		f.What = fmt.Sprintf("version %s (%s); no version was measured", found, how)
	default:
		f.What = fmt.Sprintf("version %s (%s) wasn't measured; %s was", found, how, strings.Join(measured, ", "))
	}
	d.add(f)
}

// versionOf is a host's version for a sentence.
func (d *doctor) versionOf(ctx context.Context, h hostconf.Host) string {
	if found, _ := d.findVersion(ctx, h); found != "" {
		return found
	}
	return "(version unknown)"
}

// findVersion returns a host's version, "" if it is unknown, and how that is known.
func (d *doctor) findVersion(ctx context.Context, h hostconf.Host) (version, how string) {
	name := program(h.Name)
	path, err := proc.LookPath(name, "/", d.o.Environ)
	if err != nil {
		return "", "no program " + name + " is in PATH"
	}
	if d.o.Versions {
		return d.started(ctx, path)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err.Error()
	}
	// A program that was installed by npm lies in its package.
	for dir, i := filepath.Dir(real), 0; i < 4 && dir != "/"; dir, i = filepath.Dir(dir), i+1 {
		data, err := os.ReadFile(filepath.Join(dir, "package.json"))
		if err != nil || len(data) > 1<<20 {
			continue
		}
		var p struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		}
		if strictjson.Unmarshal(data, &p, strictjson.Options{}) == nil && p.Name != "" && p.Version != "" {
			return short(p.Version, 40), filepath.Join(dir, "package.json")
		}
	}
	return "", "no package.json is near " + real
}

// started asks a program for its version.
func (d *doctor) started(ctx context.Context, path string) (version, how string) {
	r, err := start(ctx, proc.Spec{Path: path, Args: []string{"--version"}, Dir: "/", Env: d.o.Environ}, nil, 10*time.Second)
	if err != nil {
		return "", fmt.Sprintf("%s --version: %v", path, err)
	}
	found := regexp.MustCompile(`[0-9]+\.[0-9]+[0-9A-Za-z.+-]*`).FindString(r.stdout)
	if found == "" {
		return "", path + " --version named none"
	}
	return short(found, 40), path + " --version"
}
