package modeltest

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
)

// API names an API that the server speaks. It speaks all of them at once and knows
// them apart by the path.
type API string

const (
	// Chat is chat completions.
	Chat API = "openai"
	// Responses is OpenAI's responses API.
	Responses API = "openai-responses"
)

// dialect is how one API puts a plan on the wire.
type dialect struct {
	// serves reports whether a request to path is of this API.
	serves func(path string) bool
	// key returns the key that a request brought.
	key func(h http.Header) string
	// decode reads a request into the common form and returns what is wrong with it,
	// "" if nothing is. What is wrong with a seal is badSeal.
	decode func(s *Server, body []byte) (Request, string)
	// frames returns the reply as events. It leaves out the end if the plan holds an
	// error frame.
	frames func(p *plan) []frame
	// whole returns the reply as one body.
	whole func(p *plan) object
	// errorEvent is the name of an event that holds an error, "" for none.
	errorEvent string
	// refusal returns an error body.
	refusal func(kind, message string) object
}

// frame is one event of a stream.
type frame struct {
	name string // the event field, "" for none
	data []byte
}

// dialects lists the APIs. An author of another adds a row and a file of its own.
func dialects() map[API]dialect {
	return map[API]dialect{
		Chat:      chat(),
		Responses: responses(),
		Messages:  messagesAPI(),
		Gemini:    gemini(),
	}
}

// dialectOf returns the API that is at path.
func dialectOf(path string) (dialect, bool) {
	for _, d := range dialects() {
		if d.serves(path) {
			return d, true
		}
	}
	return dialect{}, false
}

func bearer(h http.Header) string { return strings.TrimPrefix(h.Get("Authorization"), "Bearer ") }

func openAIError(kind, message string) object {
	return object{"error": object{"message": message, "type": kind}}
}

// badSeal starts what decode says of a seal that is not the server's or doesn't
// belong to its text. Such a request is refused, but is no violation: a client may
// have to find out.
const badSeal = "seal: "

// seal returns what stands for text where an API signs or encrypts reasoning. A
// server accepts it back with the same text and under the same key alone.
func seal(key, text string) string {
	sum := sha256.Sum256([]byte(key + "\x00" + text))
	return base64.StdEncoding.EncodeToString(append([]byte("sealed:"), sum[:]...))
}
