package mcp

import (
	"fmt"
	"time"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/tool"
)

// giveUp records that the server can't be called any more.
func (s *server) giveUp(why string) {
	s.mu.Lock()
	s.failed, s.lastErr = why, why
	s.mu.Unlock()
	s.notice("warning", "it is not available: "+why)
}

// died records that a conversation ended by itself.
func (s *server) died(cause, stderr string) {
	msg := s.secrets.clean(withTail(cause, stderr))
	s.mu.Lock()
	s.lastErr, s.diedAt = msg, time.Now()
	s.mu.Unlock()
	s.notice("warning", msg)
}

// remark records something odd that the server did, once.
func (s *server) remark(text string) {
	s.mu.Lock()
	again := s.said[text]
	if len(s.said) < maxNotices {
		s.said[text] = true
	}
	s.mu.Unlock()
	if !again {
		s.notice("warning", text)
	}
}

// notice records a text about the server.
func (s *server) notice(level, text string) {
	s.mu.Lock()
	s.notices++
	n := s.notices
	s.mu.Unlock()
	if n > maxNotices || s.host.opts.Record == nil {
		return
	}
	if n == maxNotices {
		text += " (this is the last remark on this server that is recorded)"
	}
	text = fmt.Sprintf("MCP server %q: %s", s.cfg.Name, s.secrets.clean(text))
	_ = s.host.opts.Record(event.Draft{Actor: event.ActorSystem, Trust: event.TrustUntrusted,
		Payload: &event.Notice{Level: level, Text: tool.Clean(cut(text, maxNotice))}}) // see Options.Record
}
