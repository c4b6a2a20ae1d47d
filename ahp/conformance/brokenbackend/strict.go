package brokenbackend

import (
	"bytes"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/strictjson"
)

func strictMutations() []Mutation {
	repairing := func(repair func(msg []byte) []byte) func(*peer, []byte) ([]byte, []byte, bool) {
		return func(_ *peer, msg []byte) ([]byte, []byte, bool) { return nil, repair(msg), false }
	}
	return []Mutation{
		{Check: "rpc.parse", About: "calls what isn't JSON an invalid request", handle: func(_ *peer, msg []byte) ([]byte, []byte, bool) {
			if strictjson.Check(msg, strictjson.Options{}) != nil {
				return failure(nil, ahp.CodeInvalidRequest), nil, true
			}
			return nil, nil, false
		}},
		{Check: "strict.utf8", About: "repairs what isn't UTF-8", handle: repairing(func(msg []byte) []byte { return bytes.ToValidUTF8(msg, []byte("?")) })},
		{Check: "strict.duplicates", About: "takes the last of repeated members", handle: repairing(func(msg []byte) []byte {
			twice := []byte(`"protocolVersion":"draft","protocolVersion":"draft"`)
			return bytes.Replace(msg, twice, twice[:len(twice)/2], 1)
		})},
		{Check: "strict.surrogate", About: "repairs half of a surrogate pair", handle: repairing(func(msg []byte) []byte {
			return bytes.Replace(msg, []byte(`"\ud83d"`), []byte(`"\ufffd"`), 1)
		})},
		{Check: "strict.mark", About: "skips a byte order mark", handle: repairing(func(msg []byte) []byte { return bytes.TrimPrefix(msg, []byte("\xef\xbb\xbf")) })},
		{Check: "strict.depth", About: "takes 64 levels at most", handle: func(_ *peer, msg []byte) ([]byte, []byte, bool) {
			if strictjson.TooDeep(msg, 64) >= 0 {
				return failure(nil, ahp.CodeParse), nil, true
			}
			return nil, nil, false
		}},
		{Check: "strict.nesting", About: "breaks at deep nesting", handle: func(_ *peer, msg []byte) ([]byte, []byte, bool) {
			if strictjson.TooDeep(msg, 10_000) >= 0 {
				panic(errBroken)
			}
			return nil, nil, false
		}},
		{Check: "strict.size", About: "answers whatever the size", stdio: stdio{unbounded: true}, handle: func(_ *peer, msg []byte) ([]byte, []byte, bool) {
			if len(msg) > MaxBytes {
				id, _ := ahp.MessageID(msg)
				s, _ := id.Value()
				return effects(s, "[]"), nil, true
			}
			return nil, nil, false
		}, around: unbounded},
		{Check: "rpc.recovers", About: "stumbles after many bad messages", handle: func(b *peer, msg []byte) ([]byte, []byte, bool) {
			switch o := parse(msg); {
			case string(msg) == "[]":
				b.counted("batches")
			case o != nil && intercepts(o) && has(o, "params.event") && b.seenSoFar("batches") >= 5:
				b.reset("batches")
				return failure(o["id"], ahp.CodeInternal), nil, true
			}
			return nil, nil, false
		}},
	}
}

// seenSoFar returns how often something was counted.
func (b *peer) seenSoFar(name string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seen[name]
}
