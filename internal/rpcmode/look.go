package rpcmode

import (
	"context"
	"errors"
	"strings"

	"github.com/abhed/abhed/internal/control"
)

// look answers with what tells about the session; the request has no fields.
func (s *server) look(r *request, tell func(control.Looker) any) *control.Error {
	if _, fault := params[noParams](r); fault != nil {
		return fault
	}
	return s.onSession(r, func(_ context.Context, session control.Session) []byte {
		return encode(r.method, r.id, tell(session.Look()))
	})
}

func (s *server) takeUsage(r *request) *control.Error {
	return s.look(r, func(l control.Looker) any { return l.Usage() })
}

type toolsBody struct {
	Tools []control.Tool `json:"tools"`
}

func (s *server) takeTools(r *request) *control.Error {
	return s.look(r, func(l control.Looker) any { return toolsBody{l.Tools()} })
}

type tasksBody struct {
	Tasks []control.Task `json:"tasks"`
}

func (s *server) takeTasks(r *request) *control.Error {
	return s.look(r, func(l control.Looker) any { return tasksBody{l.Tasks()} })
}

type providersBody struct {
	Providers []control.Provider `json:"providers"`
}

// takeProviders needs no session.
func (s *server) takeProviders(r *request) *control.Error {
	if _, fault := params[noParams](r); fault != nil {
		return fault
	}
	return s.side(r, func(context.Context) {
		workspace := ""
		if o, _ := s.current(); o != nil {
			workspace = o.session.Info().Workspace
		}
		list, err := s.engine.Providers(workspace)
		if err != nil {
			s.out.inOrder(encodeError(r.id, asError(err)))
			return
		}
		s.out.inOrder(encode("providers", r.id, providersBody{list}))
	})
}

type exportBody struct {
	Format  string `json:"format"`
	Content string `json:"content"`
}

func (s *server) takeExport(r *request) *control.Error {
	p, fault := params[struct {
		Format string `json:"format"`
	}](r)
	if fault != nil {
		return fault
	}
	if p.Format != "" && p.Format != "jsonl" && p.Format != "html" {
		return usagef(`export: found %s, expected "jsonl" or "html" (at /format)`, quote(p.Format))
	}
	if p.Format == "" {
		p.Format = "jsonl"
	}
	return s.onSession(r, func(ctx context.Context, session control.Session) []byte {
		var text limited
		err := session.Look().Export(ctx, &text, p.Format)
		if errors.Is(err, errTooLarge) {
			return encodeError(r.id, &control.Error{Code: control.CodeFailed, Msg: "the record is larger than a line may be; write it to a file with abhed record export"})
		}
		if err != nil {
			return encodeError(r.id, asError(err))
		}
		return encode("export", r.id, exportBody{p.Format, strings.ToValidUTF8(text.String(), "\uFFFD")})
	})
}
