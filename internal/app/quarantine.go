package app

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/abhed/abhed/internal/mcp"
	"github.com/abhed/abhed/internal/model"
)

// careful is a model's client that takes a tool of an MCP server out of a request when
// the endpoint refuses the request because of it: one bad schema never sinks the rest.
type careful struct {
	model.Client
	servers func() *mcp.Host // nil until they are started
}

// Stream asks once more without the tools that the endpoint blamed.
func (c careful) Stream(ctx context.Context, req *model.Request, onDelta func(model.Delta)) (*model.Response, error) {
	resp, err := c.Client.Stream(ctx, req, onDelta)
	var refused *model.Error
	if c.servers() == nil || !errors.As(err, &refused) || refused.Kind != model.ErrRequest || refused.Status != 400 && refused.Status != 422 {
		return resp, err
	}
	blamed := c.blamed(req.Tools, refused.Detail)
	if len(blamed) == 0 {
		return resp, err
	}
	less := *req
	less.Tools = slices.DeleteFunc(slices.Clone(req.Tools), func(t model.ToolSpec) bool { return slices.Contains(blamed, t.Name) })
	return c.Client.Stream(ctx, &less, onDelta)
}

// toolAt finds where an error points into the list of tools.
var toolAt = regexp.MustCompile(`\btools(?:\[|\.)(\d{1,4})\b`)

// blamed takes the tools out that an error is about, and returns their names.
func (c careful) blamed(tools []model.ToolSpec, detail string) []string {
	var names []string
	for _, t := range tools {
		if strings.Contains(detail, t.Name) {
			names = append(names, t.Name)
		}
	}
	if m := toolAt.FindStringSubmatch(detail); m != nil {
		if i, err := strconv.Atoi(m[1]); err == nil && i < len(tools) {
			names = append(names, tools[i].Name)
		}
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return !c.servers().Quarantine(name, "the model's endpoint refused its description: "+detail)
	})
}
