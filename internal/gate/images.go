package gate

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model"
)

// imageID is the id of the n-th image that came with the text part id.
func imageID(id string, n int) string { return fmt.Sprintf("%s:image%d", id, n) }

// imagePart returns a picture as backends are shown it: to be uploaded, or with size
// and hash where that can't be.
func (g *Gate) imagePart(id string, img *event.Image) ahp.Part {
	p := ahp.Part{ID: id, Kind: ahp.KindAttachment, MediaType: "application/octet-stream", Selection: ahp.SelectMetadata}
	data, err := base64.StdEncoding.DecodeString(img.Data)
	if err != nil {
		return p // no client sends it either
	}
	p.MediaType = mediaType(data)
	if l := g.o.Backends.lender; l != nil && len(data) <= maxUpload {
		p.Selection, p.Body = ahp.SelectBody, &ahp.BodyRef{Ref: l.keep(data)}
		return p
	}
	n := int64(len(data))
	p.Size, p.SHA256 = &n, sum(string(data))
	return p
}

// imageParts returns the images that came with the text part id.
func (g *Gate) imageParts(id string, images []event.Image) []ahp.Part {
	var out []ahp.Part
	for i := range images {
		out = append(out, g.imagePart(imageID(id, i), &images[i]))
	}
	return out
}

// image returns the picture that p stands for, as it was: one can be left out, and
// nothing else.
func (a *adopted) image(p *ahp.Part) (*event.Image, error) {
	was, known := a.images[p.ID]
	if !known || p.Kind != ahp.KindAttachment || p.MediaType != was.sent.MediaType || p.Gap != nil || p.Body != nil && (was.sent.Body == nil || *p.Body != *was.sent.Body) {
		return nil, fmt.Errorf("its part %s has no text, and of what isn't text only an image that was there can stay", p.ID)
	}
	return was.image, nil
}

type originalImage struct {
	image *event.Image
	sent  ahp.Part
}

// appendImage puts an image into out: into a message of a person, or beside the
// result in front of it.
func appendImage(out *model.Message, img *event.Image) error {
	switch out.Role {
	case event.RoleUser:
		out.Parts = append(out.Parts, model.Part{Image: img})
		return nil
	case event.RoleTool:
		if n := len(out.Parts); n > 0 && out.Parts[n-1].ToolResult != nil {
			r := out.Parts[n-1].ToolResult // a copy, see adopted.part
			r.Images = append(r.Images, *img)
			return nil
		}
	}
	return errors.New("an image can't be there")
}

// sameParts reports whether two lists of parts are the same.
func sameParts(a, b []model.Part) bool {
	return slices.EqualFunc(a, b, func(x, y model.Part) bool {
		if x.ToolResult == nil || y.ToolResult == nil {
			return x == y
		}
		r, s := *x.ToolResult, *y.ToolResult
		images := slices.Equal(r.Images, s.Images)
		return images && r.CallID == s.CallID && r.Name == s.Name && r.Content == s.Content && r.IsError == s.IsError
	})
}
