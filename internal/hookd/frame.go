package hookd

import (
	"bytes"

	"github.com/abhed/abhed/internal/hookline"
)

// encodeAnswer returns a as a text that decodeAnswer reads.
func encodeAnswer(a Answer) []byte { return hookline.EncodeAnswer(a) }

// decodeAnswer is the inverse of encodeAnswer.
func decodeAnswer(b []byte) (Answer, error) {
	fields, err := hookline.ReadFrame(bytes.NewReader(b), len(b))
	if err != nil {
		return Answer{}, err
	}
	return hookline.AnswerOf(fields)
}
