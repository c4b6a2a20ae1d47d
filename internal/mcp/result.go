package mcp

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/strictjson"
	"github.com/abhed/abhed/internal/tool"
)

// part is one piece of a result's content.
type part struct {
	Type     string         `json:"type"`
	Text     string         `json:"text"`
	Data     string         `json:"data"`
	MIMEType string         `json:"mimeType"`
	URI      string         `json:"uri"`
	Name     string         `json:"name"`
	Resource *resourceValue `json:"resource"`
}

// resourceValue is a resource within a result.
type resourceValue struct {
	URI      string `json:"uri"`
	MIMEType string `json:"mimeType"`
	Text     string `json:"text"`
	Blob     string `json:"blob"`
}

// result turns what the server answered into what the model reads: the text, the
// images, and a line for each piece that is neither.
func (t *serverTool) result(raw jsontext.Value) tool.Result {
	o, err := readOutcome(raw)
	if err != nil {
		return t.fail("its result can't be read: " + err.Error())
	}
	res := tool.Result{IsError: o.IsError.Kind() == 't'}
	var texts []string
	hasText := false
	content, more := elements(o.Content, maxPieces)
	for _, c := range content {
		var p part
		if err := strictjson.Unmarshal(c, &p, strictjson.Options{MaxBytes: maxMessage}); err != nil {
			texts = append(texts, fmt.Sprintf("[a piece of the result can't be read: %s]", cut(err.Error(), 200)))
			continue
		}
		text, isText := p.text(&res)
		hasText = hasText || isText
		if text != "" {
			texts = append(texts, text)
		}
	}
	if more {
		texts = append(texts, fmt.Sprintf("[the result has more than %d pieces; the rest is not shown]", maxPieces))
	}
	note := ""
	if structured := o.Structured; structured != nil && structured.Kind() != 'n' {
		if !hasText {
			texts = append(texts, string(structured))
		}
		if fault := t.fits(structured); fault != "" && !res.IsError {
			note = "\n[Note: the structured part of this result doesn't fit the tool's own schema: " + cut(visible(fault), 400) + "]"
		}
	}
	res.Content = cutMiddle(strings.Join(texts, "\n"), maxText) + note
	if res.Content == "" {
		res.Content = "(The tool gave an empty result.)"
	}
	return res
}

// text returns what the model reads of a piece; an image goes into res.
func (p *part) text(res *tool.Result) (text string, isText bool) {
	switch p.Type {
	case "text":
		return p.Text, true
	case "image":
		return p.image(res), false
	case "resource_link":
		return fmt.Sprintf("[a link to the resource %s: %s]", quoted(visible(p.Name)), cut(visible(p.URI), 500)), false
	case "resource":
		if r := p.Resource; r != nil && r.Text != "" {
			return fmt.Sprintf("[resource %s]\n%s", cut(visible(r.URI), 500), r.Text), true
		} else if r != nil {
			return fmt.Sprintf("[resource %s of type %s, not shown: %d bytes of base64]", cut(visible(r.URI), 500), quoted(r.MIMEType), len(r.Blob)), false
		}
		return "[a resource without content]", false
	default:
		return fmt.Sprintf("[a piece of kind %s and type %s, not shown: %d bytes of base64]", quoted(p.Type), quoted(p.MIMEType), len(p.Data)), false
	}
}

// image takes an image over, or says why it didn't.
func (p *part) image(res *tool.Result) string {
	why := ""
	switch {
	case !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, p.MIMEType):
		why = "models don't take this type"
	case len(p.Data) > maxImage:
		why = fmt.Sprintf("the limit is %d bytes of base64", maxImage)
	case len(res.Images) == maxImages:
		why = fmt.Sprintf("a result has at most %d images", maxImages)
	default:
		if _, err := base64.StdEncoding.DecodeString(p.Data); err != nil || p.Data == "" {
			why = "it isn't base64"
		}
	}
	if why != "" {
		return fmt.Sprintf("[an image of type %s, not shown: %s; it has %d]", quoted(p.MIMEType), why, len(p.Data))
	}
	res.Images = append(res.Images, event.Image{MediaType: p.MIMEType, Data: p.Data})
	return fmt.Sprintf("[image %d: %s]", len(res.Images), p.MIMEType)
}
