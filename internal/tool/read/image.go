package read

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"net/http"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/tool"
)

const (
	maxImage = 5 << 20 // bytes
	maxSide  = 8000    // pixels; more is refused by the APIs
)

// imageType returns the media type of an image that models take, by what its bytes
// are, or "".
func imageType(data []byte) string {
	switch kind := http.DetectContentType(data); kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return kind
	}
	return ""
}

// image returns an image for the model. One that can't be right is refused here: an API
// would refuse every later request of the conversation that it is part of.
func (t *Tool) image(path, kind string, data []byte) tool.Result {
	what := fmt.Sprintf("%s is an image (%s, %d bytes)", path, kind, len(data))
	if !t.o.Images {
		return tool.Fail(fmt.Sprintf("%s is not a text file: it is an image (%s, %d bytes), and the model in use takes none. Use a program that knows the format.", path, kind, len(data)))
	}
	if len(data) > maxImage {
		return tool.Fail(fmt.Sprintf("%s; at most %d bytes can be shown. Make a smaller copy and read that.", what, maxImage))
	}
	width, height, err := measure(kind, data)
	switch {
	case err != nil:
		return tool.Fail(fmt.Sprintf("%s, but it is broken: %v.", what, err))
	case width < 1 || height < 1 || width > maxSide || height > maxSide:
		return tool.Fail(fmt.Sprintf("%s of %d x %d pixels; at most %d on a side can be shown. Make a smaller copy and read that.", what, width, height, maxSide))
	}
	res := tool.OK(fmt.Sprintf("(%s of %d x %d pixels; it comes with this result)", what, width, height))
	res.Images = []event.Image{{MediaType: kind, Data: base64.StdEncoding.EncodeToString(data)}}
	return res
}

// measure returns the size of an image in pixels. It looks at its head and at its end.
func measure(kind string, data []byte) (width, height int, err error) {
	var c image.Config
	whole := true
	switch kind {
	case "image/png":
		c, err = png.DecodeConfig(bytes.NewReader(data))
		whole = bytes.Contains(data, []byte("IEND\xaeB`\x82"))
	case "image/jpeg":
		c, err = jpeg.DecodeConfig(bytes.NewReader(data))
		whole = bytes.LastIndex(data, []byte{0xff, 0xd9}) > 0
	case "image/gif":
		c, err = gif.DecodeConfig(bytes.NewReader(data))
		whole = bytes.HasSuffix(bytes.TrimRight(data, "\x00"), []byte{0x3b})
	case "image/webp":
		c, err = webp(data)
		whole = len(data) >= 12 && uint64(binary.LittleEndian.Uint32(data[4:]))+8 <= uint64(len(data))
	}
	if err == nil && !whole {
		err = fmt.Errorf("it ends too early")
	}
	return c.Width, c.Height, err
}

// webp reads the size from the first chunk of a WebP file.
func webp(data []byte) (image.Config, error) {
	if len(data) < 30 {
		return image.Config{}, fmt.Errorf("it ends too early")
	}
	chunk, b := string(data[12:16]), data[20:]
	switch {
	case chunk == "VP8X":
		at := func(i int) int { return int(b[i]) | int(b[i+1])<<8 | int(b[i+2])<<16 }
		return image.Config{Width: at(4) + 1, Height: at(7) + 1}, nil
	case chunk == "VP8L" && b[0] == 0x2f:
		bits := binary.LittleEndian.Uint32(b[1:])
		return image.Config{Width: int(bits&0x3fff) + 1, Height: int(bits>>14&0x3fff) + 1}, nil
	case chunk == "VP8 " && bytes.Equal(b[3:6], []byte{0x9d, 0x01, 0x2a}):
		return image.Config{Width: int(binary.LittleEndian.Uint16(b[6:])) & 0x3fff, Height: int(binary.LittleEndian.Uint16(b[8:])) & 0x3fff}, nil
	}
	return image.Config{}, fmt.Errorf("its first chunk is not one of an image")
}
