package hookline

import (
	"bytes"
	"encoding/binary"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
)

func sample() (*Call, Identity) {
	return &Call{
		Host: "claude-code", Native: "PreToolUse", Registration: "/r", Home: "/h", Dir: "/d", Open: true, Limit: 5 * time.Second, Unprotected: true,
		Markers: map[string]string{"COPILOT_CLI": "1", "CURSOR_VERSION": ""}, Data: []byte("{}\n"),
	}, Identity{time.Unix(1, 2), 3, 1 << 63, "/bin/with a space"}
}

func TestCallAsFrame(t *testing.T) {
	c, id := sample()
	for _, want := range []*Call{c, {}, {Data: []byte{}, Limit: -1}} {
		fields, err := ReadFrame(bytes.NewReader(EncodeCall(want, id)), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		got, who, err := DecodeCall(fields)
		if err != nil {
			t.Fatal(err)
		}
		if got.Data = bytes.Clone(got.Data); len(want.Data) == 0 {
			got.Data = want.Data
		}
		if !reflect.DeepEqual(got, want) || !who.Changed.Equal(id.Changed) || who.Path != id.Path || who.Inode != id.Inode || who.Size != id.Size {
			t.Errorf("found %+v of %+v\nexpected %+v of %+v", got, who, want, id)
		}
	}
}

// TestAnotherVersion holds that a call which can't be read still says who calls.
func TestAnotherVersion(t *testing.T) {
	_, id := sample()
	got, who, err := DecodeCall([][]byte{[]byte(magic + "99"), id.encode(), []byte("whatever")})
	if got != nil || who.Path != id.Path || err != nil {
		t.Errorf("found %+v of %+v, %v", got, who, err)
	}
	for _, fields := range [][][]byte{nil, {[]byte("x")}, {[]byte("other"), id.encode()}, {[]byte(magic + version), []byte("1 2 3")}, {[]byte(magic + version), id.encode()}} {
		if _, _, err := DecodeCall(fields); err == nil {
			t.Errorf("%q was taken for a call", fields)
		}
	}
}

func TestReadFrameRefuses(t *testing.T) {
	c, id := sample()
	whole := EncodeCall(c, id)
	for n := range whole {
		if _, err := ReadFrame(bytes.NewReader(whole[:n]), 1<<20); err == nil {
			t.Fatalf("%d of %d bytes were taken for a frame", n, len(whole))
		}
	}
	if _, err := ReadFrame(bytes.NewReader(whole), 100); err == nil || !strings.Contains(err.Error(), "larger than its bound") {
		t.Errorf("a frame beyond the bound: %v", err)
	}
	many := binary.BigEndian.AppendUint32(nil, maxFields+1)
	if _, err := ReadFrame(bytes.NewReader(many), 100); err == nil || !strings.Contains(err.Error(), "65 fields") {
		t.Errorf("too many fields: %v", err)
	}
	if _, err := ReadFrame(strings.NewReader(""), 100); err != io.EOF {
		t.Errorf("nothing at all: %v", err)
	}
}

// TestALengthCostsNothing holds that a length alone takes no memory.
func TestALengthCostsNothing(t *testing.T) {
	frame := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 1), MaxEvent)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		if _, err := ReadFrame(bytes.NewReader(frame), MaxEvent); err != io.ErrUnexpectedEOF {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 100*2*step {
		t.Errorf("100 empty frames took %d bytes", took)
	}
	large := bytes.Repeat([]byte("0123456789"), 3*step/10)
	fields, err := ReadFrame(bytes.NewReader(AppendFrame(nil, large, nil, large)), 10*step)
	if err != nil || len(fields) != 3 || !bytes.Equal(fields[0], large) || !bytes.Equal(fields[2], large) {
		t.Errorf("a large field didn't come back: %v", err)
	}
}

func TestAnswerAsFrame(t *testing.T) {
	want := Answer{ExitDeny, []byte("out"), []byte("err")}
	fields, err := ReadFrame(bytes.NewReader(EncodeAnswer(want)), 100)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := AnswerOf(fields); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("found %+v, %v", got, err)
	}
	for _, fields := range [][][]byte{nil, {{42}, nil}, {nil, nil, nil}, {{42, 0}, nil, nil}} {
		if _, err := AnswerOf(fields); err == nil {
			t.Errorf("%v was taken for an answer", fields)
		}
	}
}

func FuzzReadFrame(f *testing.F) {
	c, id := sample()
	f.Add(EncodeCall(c, id))
	f.Add(EncodeAnswer(Answer{ExitDeny, []byte("out"), []byte("err")}))
	f.Add([]byte{0, 0, 0, 1, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, data []byte) {
		fields, err := ReadFrame(bytes.NewReader(data), 1<<16)
		if err != nil {
			return
		}
		again := AppendFrame(nil, fields...)
		if !bytes.HasPrefix(data, again) {
			t.Fatalf("%x was read as %x", data, again)
		}
	})
}

func FuzzDecodeCall(f *testing.F) {
	c, id := sample()
	f.Add(EncodeCall(c, id))
	f.Add(EncodeCall(&Call{}, Identity{}))
	f.Fuzz(func(t *testing.T, data []byte) {
		fields, err := ReadFrame(bytes.NewReader(data), 1<<16)
		if err != nil {
			return
		}
		c, id, err := DecodeCall(fields)
		if err != nil || c == nil {
			return
		}
		fields, err = ReadFrame(bytes.NewReader(EncodeCall(c, id)), 1<<17)
		if err != nil {
			t.Fatal(err)
		}
		again, who, err := DecodeCall(fields)
		if err != nil || !reflect.DeepEqual(again, c) || who != id {
			t.Fatalf("%+v of %+v became %+v of %+v, %v", c, id, again, who, err)
		}
	})
}
