package read_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/tool"
	"github.com/abhed/abhed/internal/tool/read"
	"github.com/abhed/abhed/internal/tool/tooltest"
	"github.com/abhed/abhed/internal/workspace"
)

// pictures are small images of each kind, 4 x 3 pixels.
func pictures(t *testing.T) map[string][]byte {
	t.Helper()
	img := image.NewPaletted(image.Rect(0, 0, 4, 3), []color.Color{color.White, color.Black})
	var p, j, g bytes.Buffer
	for _, err := range []error{png.Encode(&p, img), jpeg.Encode(&j, img, nil), gif.Encode(&g, img, nil)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	riff := func(chunk string, body ...byte) []byte {
		body = append(body, make([]byte, 12)...)
		n := byte(len(body))
		return append([]byte("RIFF"+string([]byte{n + 12, 0, 0, 0})+"WEBP"+chunk+string([]byte{n, 0, 0, 0})), body...)
	}
	return map[string][]byte{
		"image/png": p.Bytes(), "image/jpeg": j.Bytes(), "image/gif": g.Bytes(),
		"image/webp":          riff("VP8 ", 0, 0, 0, 0x9d, 0x01, 0x2a, 4, 0, 3, 0),
		"image/webp lossless": riff("VP8L", 0x2f, 3, 0x80, 0, 0),
		"image/webp extended": riff("VP8X", 0, 0, 0, 0, 3, 0, 0, 2, 0, 0),
	}
}

func look(t *testing.T, dir, path string, images bool) tool.Result {
	t.Helper()
	it := read.New(workspace.NewTracker(), read.Options{Images: images})
	return tooltest.Run(t.Context(), t, it, tooltest.Options{WorkDir: dir}, m{"path": path})
}

func TestImages(t *testing.T) {
	dir := t.TempDir()
	for name, data := range pictures(t) {
		kind, _, _ := strings.Cut(name, " ")
		file(t, dir, "picture.txt", string(data)) // the bytes count, not the name
		res := look(t, dir, "picture.txt", true)
		if res.IsError || len(res.Images) != 1 || !strings.Contains(res.Content, "("+kind+",") || !strings.Contains(res.Content, "4 x 3 pixels") || strings.Count(res.Content, "\n") > 0 {
			t.Errorf("%s: %+v", name, res.Content)
			continue
		}
		if back, err := base64.StdEncoding.DecodeString(res.Images[0].Data); err != nil || !bytes.Equal(back, data) || res.Images[0].MediaType != kind {
			t.Errorf("%s: %d bytes of %s came, %v", name, len(back), res.Images[0].MediaType, err)
		}
		if res := look(t, dir, "picture.txt", false); !res.IsError || len(res.Images) != 0 || !strings.Contains(res.Content, kind) || !strings.Contains(res.Content, "takes none") {
			t.Errorf("%s for a model without images: %+v", name, res)
		}
		file(t, dir, "cut", string(data[:len(data)-14]))
		if res := look(t, dir, "cut", true); !res.IsError || len(res.Images) != 0 || !strings.Contains(res.Content, "broken") {
			t.Errorf("%s, cut: %+v", name, res)
		}
	}
}

func TestImagesThatAreNotGiven(t *testing.T) {
	dir := t.TempDir()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewPaletted(image.Rect(0, 0, 8001, 1), []color.Color{color.White})); err != nil {
		t.Fatal(err)
	}
	file(t, dir, "wide", b.String())
	file(t, dir, "heavy", string(pictures(t)["image/png"])+strings.Repeat("\x00", 5<<20))
	file(t, dir, "page.svg", "<svg/>\n")
	file(t, dir, "about.txt", "GIF89a is a format.\n")
	file(t, dir, "bmp", "BM\x00\x00\x00\x00")
	for path, want := range map[string]string{"wide": "8001 x 1 pixels", "heavy": "at most 5242880 bytes", "bmp": "not a text file", "page.svg": "1\t<svg/>\n", "about.txt": "1\tGIF89a is a format.\n"} {
		res := look(t, dir, path, true)
		if len(res.Images) != 0 || !strings.Contains(res.Content, want) || res.IsError == strings.HasPrefix(want, "1\t") {
			t.Errorf("%s: %q, want %q", path, res.Content, want)
		}
	}
}
