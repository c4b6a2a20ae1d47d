package mcp

import (
	"bytes"
	"context"
	"io"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/abhed/abhed/internal/proc"
)

// stdio is the SDK's transport and connection over the streams of a child. The
// process is its owner's to end.
type stdio struct {
	child *proc.Child
	link  *link
	// open ends when the SDK closes the connection.
	open  context.Context
	close context.CancelFunc

	// What follows belongs to the one goroutine of the SDK that reads.
	buf     []byte
	scanned int // bytes of buf that are known to hold no line end
}

var (
	_ sdk.Transport  = (*stdio)(nil)
	_ sdk.Connection = (*stdio)(nil)
)

func newStdio(child *proc.Child, l *link) *stdio {
	s := &stdio{child: child, link: l}
	s.open, s.close = context.WithCancel(context.Background())
	return s
}

// Connect returns the connection itself.
func (s *stdio) Connect(context.Context) (sdk.Connection, error) { return s, nil }

// Read returns the next message, passing over lines that are none.
func (s *stdio) Read(ctx context.Context) (jsonrpc.Message, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for {
		line, err := s.line()
		if err != nil {
			return nil, err
		}
		out := s.link.server.hear(line)
		if out == nil {
			continue
		}
		msg, err := jsonrpc.DecodeMessage(out)
		if err != nil {
			s.link.server.remark("a message isn't JSON-RPC 2.0 and was passed over: " + err.Error())
			continue
		}
		return msg, nil
	}
}

// line returns the next line of the child's output without its end.
func (s *stdio) line() ([]byte, error) {
	for {
		if n := bytes.IndexByte(s.buf[s.scanned:], '\n'); n >= 0 {
			line := s.buf[:s.scanned+n]
			s.buf, s.scanned = s.buf[s.scanned+n+1:], 0
			return line, nil
		}
		s.scanned = len(s.buf)
		if len(s.buf) > maxMessage {
			return nil, s.link.broken(errTooLarge)
		}
		chunk, err := s.child.Read(s.open)
		if err != nil {
			if last := s.buf; err == io.EOF && len(last) > 0 {
				s.buf, s.scanned = nil, 0
				return last, nil
			}
			return nil, io.EOF
		}
		s.buf = append(s.buf, chunk...)
	}
}

// Write writes one message as one line.
func (s *stdio) Write(ctx context.Context, msg jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	sent, err := s.link.send()
	if err != nil {
		s.close() // so that Read ends, and with it the conversation
		return err
	}
	defer sent()
	return s.child.Write(ctx, append(data, '\n'))
}

// Close makes Read return. The SDK calls it while it holds a lock, so it doesn't
// wait for the process.
func (s *stdio) Close() error {
	s.close()
	return s.child.CloseInput()
}

// SessionID returns "": the process is the session.
func (s *stdio) SessionID() string { return "" }
