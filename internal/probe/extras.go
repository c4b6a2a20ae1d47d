package probe

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"strings"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/strictjson"
)

const (
	outputPrompt = "How many legs do three cats have together?"
	outputSchema = `{"type":"object","properties":{"legs":{"type":"integer"}},"required":["legs"],"additionalProperties":false}`
	imagePrompt  = "Which colour fills this picture? Answer with one word."
	recallPrompt = "Which code word does the first line of your instructions hold? Answer with it alone."
	// recallWord stands at the start of the long prompt.
	recallWord = "marram-2806"

	// longBytes is the length of the long prompt: above what providers cache at least
	// (up to 4096 tokens), and above the windows to which some servers cut in silence.
	longBytes = 22_000
	// leastBytes is the shortest that is worth a try.
	leastBytes = 5_000
	// bytesPerToken is more than any text of words has, to tell a count from one that
	// belongs to a cut prompt.
	bytesPerToken = 9
)

// output asks for an answer that fits a schema, without a word of it in the prompt.
func (r *runner) output(ctx context.Context) {
	if r.blocked != "" {
		return
	}
	a := r.call(ctx, &model.Request{Messages: []*model.Message{user(outputPrompt)}, Output: []byte(outputSchema)})
	if a.err != nil {
		r.failed(Output, a, "where a final answer must fit a schema, use another endpoint or model")
		return
	}
	if r.unfinished(Output, a.resp) {
		return
	}
	text := strings.TrimSpace(a.resp.Message.Text())
	var out struct {
		Legs *int64 `json:"legs"`
	}
	if err := strictjson.Unmarshal([]byte(text), &out, strictjson.Options{RejectUnknown: true}); err != nil || out.Legs == nil {
		r.set(Output, No, "where a final answer must fit a schema, it has to be checked and asked for again", "the schema was taken and not held to: %s%s", r.quoted(text), noted(a.resp))
		return
	}
	r.set(Output, OK, "", "the answer fits the schema%s", noted(a.resp))
}

// image shows a small picture, if the model is said to take some.
func (r *runner) image(ctx context.Context) {
	if r.blocked != "" {
		return
	}
	if !r.o.Images {
		r.skip(Image, "the model isn't configured as one that takes images")
		return
	}
	do := "set images to false for this model in the settings"
	data, err := picture()
	if err != nil {
		r.set(Image, Unclear, "", "the picture could not be made: %v", err)
		return
	}
	m := user(imagePrompt)
	m.Parts = append(m.Parts, model.Part{Image: &model.Image{MediaType: "image/png", Data: data}})
	a := r.call(ctx, &model.Request{Messages: []*model.Message{m}})
	switch {
	case a.err != nil:
		r.failed(Image, a, do)
	case r.unfinished(Image, a.resp):
	case strings.Contains(strings.ToLower(a.resp.Message.Text()), "red"):
		r.set(Image, OK, "", "it was seen%s", noted(a.resp))
	default:
		r.set(Image, Unclear, "try again; if it stays, "+do, "it was taken, but the answer is not what it shows: %s%s", r.quoted(a.resp.Message.Text()), noted(a.resp))
	}
}

// picture returns a red square as PNG in base64.
func picture() (string, error) {
	img := image.NewRGBA(image.Rect(0, 0, 64, 64))
	draw.Draw(img, img.Bounds(), image.NewUniform(color.RGBA{R: 230, A: 255}), image.Point{}, draw.Src)
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(b.Bytes()), nil
}

// longText is a text of about n bytes, always the same.
func longText(n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The code word is %s.\nWhat follows is the log of a lighthouse, kept for no purpose but its length.\n", recallWord)
	for i := 1; b.Len() < n; i++ {
		fmt.Fprintf(&b, "Entry %d: the lamp was lit at dusk, the keeper walked the stairs %d times, and the wind came from the west.\n", i, 1+i*7%11)
	}
	return b.String()
}

// longPrompt asks the same twice, at a length for which a cache pays.
func (r *runner) longPrompt(ctx context.Context) {
	if r.blocked != "" {
		return
	}
	size := longBytes
	if r.o.Window > 0 {
		size = int(min(longBytes, r.o.Window*2)) // about half of the window
	}
	if size < leastBytes {
		for _, n := range []string{Cache, Window} {
			r.skip(n, fmt.Sprintf("the configured context window of %d tokens is too small for a long prompt", r.o.Window))
		}
		return
	}
	req := &model.Request{System: longText(size), Messages: []*model.Message{user(recallPrompt)}}
	first := r.call(ctx, req)
	r.sayWindow(first, size)
	if first.err != nil {
		why := "the long request before it failed"
		if r.blocked != "" {
			why = r.blocked
		}
		r.skip(Cache, why)
		return
	}
	second := r.call(ctx, req)
	if second.err != nil {
		r.failed(Cache, second, "")
		return
	}
	r.sayCache(second.resp.Usage)
}

func (r *runner) sayCache(u *model.Usage) {
	switch {
	case u == nil || u.CacheRead == nil:
		r.set(Cache, Unclear, "", "the endpoint does not say what it reads from a cache")
	case *u.CacheRead > 0:
		r.set(Cache, OK, "", "%d tokens of the second of two same requests came from a cache", *u.CacheRead)
	default:
		r.set(Cache, No, "every turn of a session may cost its whole prompt; see whether the endpoint has a prompt cache to turn on", "nothing of the second of two same requests came from a cache")
	}
}

// sayWindow says whether a long prompt was taken whole.
func (r *runner) sayWindow(a *answer, size int) {
	var me *model.Error
	do := "raise the server's context length, or set context_window to what it really is"
	claim := "no context window is configured"
	if r.o.Window > 0 {
		claim = fmt.Sprintf("the configured %d tokens were not filled, which would cost as much", r.o.Window)
	}
	switch {
	case errors.As(a.err, &me) && me.Kind == model.ErrOverflow:
		r.set(Window, No, do, "a prompt of %d bytes does not fit: %s", size, said(me))
		return
	case a.err != nil:
		r.failed(Window, a, do)
		return
	}
	counted := int64(-1)
	if u := a.resp.Usage; u != nil && u.Input != nil {
		counted = *u.Input + orZero(u.CacheRead) + orZero(u.CacheWrite)
	}
	recalled := strings.Contains(a.resp.Message.Text(), recallWord)
	switch {
	case recalled && counted >= 0:
		r.set(Window, OK, "", "a prompt of %d bytes (%d tokens) was read from its start; %s", size, counted, claim)
	case recalled:
		r.set(Window, OK, "", "a prompt of %d bytes was read from its start; %s", size, claim)
	case counted >= 0 && counted < int64(size)/bytesPerToken:
		r.set(Window, No, do, "of a prompt of %d bytes only %d tokens were counted, and its start was not known: the endpoint cuts prompts", size, counted)
	default:
		r.set(Window, Unclear, "if it stays, "+do, "a prompt of %d bytes was taken, but the answer does not hold the word from its start: %s; %s", size, r.quoted(a.resp.Message.Text()), claim)
	}
}
