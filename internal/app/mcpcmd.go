package app

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/abhed/abhed/internal/gate"
	"github.com/abhed/abhed/internal/mcp"
	"github.com/abhed/abhed/internal/strictjson"
)

// listedServer is one MCP server in the JSON form of the list.
type listedServer struct {
	Name      string   `json:"name"`
	Transport string   `json:"transport"`
	State     string   `json:"state"`
	Pid       int      `json:"pid,omitzero"`
	StartMS   float64  `json:"start_ms"`
	Tools     []string `json:"tools"`
	ReadOnly  []string `json:"read_only,omitempty"`
	Deferred  []string `json:"deferred,omitempty"`
	LeftOut   []string `json:"left_out,omitempty"`
	Error     string   `json:"error,omitempty"`
}

type serverList struct {
	Servers  []listedServer `json:"servers"`
	Disabled []string       `json:"disabled,omitempty"`
}

// MCPList starts the configured MCP servers and prints what each one provides. It
// exits with 1 if one of them can't be used.
func MCPList(ctx context.Context, o SettingsOptions, asJSON bool, sys System) int {
	e, notes, err := overheard(ctx, o, sys)
	if err != nil {
		return sys.fail(ExitUsage, err)
	}
	defer e.close()
	if err := e.startServers(ctx); err != nil {
		return sys.fail(ExitUsage, err)
	}
	list := e.serverList()
	if asJSON {
		b, err := strictjson.Marshal(list)
		if err != nil {
			return sys.fail(ExitFailure, err)
		}
		fmt.Fprintf(sys.Stdout, "%s\n", b)
	} else {
		printServers(sys, list)
	}
	notes.print(sys)
	if slices.ContainsFunc(list.Servers, func(s listedServer) bool { return s.State != mcp.StateReady }) {
		return ExitNegative
	}
	return ExitOK
}

func (e *engine) serverList() serverList {
	list := serverList{Servers: []listedServer{}}
	l := e.o.loaded
	for _, name := range slices.Sorted(maps.Keys(l.MCP)) {
		if l.MCP[name].Disabled {
			list.Disabled = append(list.Disabled, name)
		}
	}
	if e.servers == nil {
		return list
	}
	for _, s := range e.servers.States() {
		out := listedServer{
			Name: s.Name, Transport: s.Transport, State: s.State, Pid: s.Pid, StartMS: milliseconds(s.Latency), Tools: s.Tools,
			ReadOnly: l.MCP[s.Name].ReadOnly, LeftOut: s.LeftOut, Error: s.Error,
		}
		for _, t := range s.Tools {
			if e.servers.Deferred(t) {
				out.Deferred = append(out.Deferred, t)
			}
		}
		list.Servers = append(list.Servers, out)
	}
	return list
}

func printServers(sys System, list serverList) {
	out := sys.Stdout
	if len(list.Servers) == 0 && len(list.Disabled) == 0 {
		fmt.Fprintln(out, "No MCP server is configured.")
	}
	line := func(label string, words []string) {
		if len(words) > 0 {
			fmt.Fprintf(out, "    %-10s%s\n", label, gate.Visible(strings.Join(words, ", ")))
		}
	}
	for _, s := range list.Servers {
		fmt.Fprintf(out, "%s  %s  %s  %d tools in %.0f ms\n", gate.Visible(s.Name), s.Transport, s.State, len(s.Tools), s.StartMS)
		line("tools", s.Tools)
		line("read-only", s.ReadOnly)
		line("on demand", s.Deferred)
		line("left out", s.LeftOut)
		if s.Error != "" {
			line("error", []string{s.Error})
		}
	}
	line("disabled", list.Disabled)
}
