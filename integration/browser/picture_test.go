package browser

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"os"
	"slices"
	"testing"
)

// savePicture writes a screenshot with a palette of its 256 most frequent colors, which takes a third of
// the bytes.
func savePicture(t *testing.T, file string, screenshot []byte) {
	t.Helper()
	picture, err := png.Decode(bytes.NewReader(screenshot))
	must(t, err)
	bounds := picture.Bounds()
	counts := make(map[color.Color]int)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[picture.At(x, y)]++
		}
	}
	palette := make(color.Palette, 0, len(counts))
	for c := range counts {
		palette = append(palette, c)
	}
	slices.SortFunc(palette, func(a, b color.Color) int { return cmp.Compare(counts[b], counts[a]) })
	palette = palette[:min(len(palette), 256)]
	nearest := make(map[color.Color]uint8, len(counts))
	for c := range counts {
		nearest[c] = uint8(palette.Index(c)) // below 256
	}
	small := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			small.SetColorIndex(x, y, nearest[picture.At(x, y)])
		}
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	must(t, encoder.Encode(&out, small))
	must(t, os.WriteFile(file, out.Bytes(), 0o644)) // a picture of the docs
}
