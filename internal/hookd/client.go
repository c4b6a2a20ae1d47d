package hookd

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ErrNoService tells that no service can be asked: none is there, it is another
// version's, or it went away before it answered.
var ErrNoService = errors.New("no service can be asked")

// Socket returns the place of the service's socket in a state folder.
func Socket(state string) string { return filepath.Join(state, "hook.sock") }

// Identity names a program file: two are equal only for the same one, unchanged. The
// time of its last change comes first, so that the newer of two can be told.
type Identity struct {
	Changed time.Time
	Size    int64
	Inode   uint64
	Path    string
}

// IdentityOf returns the identity of the program file at path.
func IdentityOf(path string) (Identity, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Identity{}, err
	}
	return Identity{info.ModTime(), info.Size(), inode(info), path}, nil
}

func (i Identity) encode() []byte {
	return fmt.Appendf(nil, "%d %d %d %s", i.Changed.UnixNano(), i.Size, i.Inode, i.Path)
}

// decodeIdentity is the inverse of encode.
func decodeIdentity(b []byte) (Identity, error) {
	parts := strings.SplitN(string(b), " ", 4)
	if len(parts) != 4 {
		return Identity{}, errors.New("found no identity of a program")
	}
	var n [3]int64
	for i := range n {
		v, err := strconv.ParseInt(parts[i], 10, 64)
		if err != nil {
			return Identity{}, errors.New("found no identity of a program")
		}
		n[i] = v
	}
	return Identity{time.Unix(0, n[0]), n[1], uint64(n[2]), parts[3]}, nil
}

// magic begins every frame to the service.
const magic = "ahp-hook 1"

// encodeCall returns c as a frame.
func encodeCall(c *Call, id Identity) []byte {
	flags := byte(0)
	if c.Open {
		flags |= 1
	}
	if c.Unprotected {
		flags |= 2
	}
	limit := binary.BigEndian.AppendUint64(nil, uint64(c.Limit))
	fields := [][]byte{[]byte(magic), id.encode(), []byte(c.Host), []byte(c.Native), []byte(c.Registration), []byte(c.Home), []byte(c.Dir), {flags}, limit, c.Data}
	for k, v := range c.Markers {
		if len(fields)+2 > maxFields {
			break
		}
		fields = append(fields, []byte(k), []byte(v))
	}
	return appendFrame(make([]byte, 0, len(c.Data)+512), fields...)
}

// decodeCall is the inverse of encodeCall.
func decodeCall(f [][]byte) (*Call, Identity, error) {
	if len(f) < 10 || len(f)%2 != 0 || string(f[0]) != magic || len(f[7]) != 1 || len(f[8]) != 8 {
		return nil, Identity{}, errors.New("found something else than a call of this version")
	}
	id, err := decodeIdentity(f[1])
	if err != nil {
		return nil, id, err
	}
	c := &Call{
		Host: string(f[2]), Native: string(f[3]), Registration: string(f[4]), Home: string(f[5]), Dir: string(f[6]),
		Open: f[7][0]&1 != 0, Unprotected: f[7][0]&2 != 0, Limit: time.Duration(binary.BigEndian.Uint64(f[8])), Data: f[9],
	}
	for i := 10; i < len(f); i += 2 {
		if c.Markers == nil {
			c.Markers = map[string]string{}
		}
		c.Markers[string(f[i])] = string(f[i+1])
	}
	return c, id, nil
}

// Ask has the service at a socket judge c. It returns ErrNoService, wrapped, if the call
// is to be judged in this process instead; then nothing was answered.
func Ask(ctx context.Context, socket string, c *Call, id Identity) (Answer, error) {
	if err := checkSocket(socket); err != nil {
		return Answer{}, fmt.Errorf("%w: %w", ErrNoService, err)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return Answer{}, fmt.Errorf("%w: %w", ErrNoService, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	if _, err := conn.Write(encodeCall(c, id)); err != nil {
		return Answer{}, fmt.Errorf("%w: %w", ErrNoService, err)
	}
	fields, err := readFrame(conn, MaxEvent)
	if err != nil {
		return Answer{}, fmt.Errorf("%w: %w", ErrNoService, err)
	}
	a, err := answerOf(fields)
	if err != nil || a.Code != ExitPass && a.Code != ExitDeliver && a.Code != ExitDeny {
		return Answer{}, fmt.Errorf("%w: it declined (%d)", ErrNoService, a.Code)
	}
	return a, nil
}
