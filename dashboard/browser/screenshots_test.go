package browser_test

import (
	"bytes"
	"flag"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

var pictures = flag.String("screenshots", "", "folder for the pictures of the pages; empty: a temporary one")

const maxPicture = 100 << 10 // bytes

// TestScreenshots makes a picture of each page: light, some dark and some on a phone.
func TestScreenshots(t *testing.T) {
	folder := *pictures
	if folder == "" {
		folder = t.TempDir()
	}
	s := serve(t)
	s.fill()
	b := open(t, 1280, 900)
	dark := []string{"overview", "topic", "dead"}
	phone := []string{"overview", "topic"}
	for _, page := range s.pages() {
		name, address := page[0], s.url+page[1]
		if name == "overview" || name == "nodes" { // which later pages show as well
			b.seesNodes(address)
		}
		b.picture(address, "light", 1280, 860, filepath.Join(folder, name+".png"))
		if slices.Contains(dark, name) {
			b.picture(address, "dark", 1280, 860, filepath.Join(folder, name+"-dark.png"))
		}
		if slices.Contains(phone, name) {
			b.picture(address, "light", 390, 844, filepath.Join(folder, name+"-phone.png"))
		}
	}
	b.faultless("screenshots")
}

// seesNodes waits until a node has answered on the page of nodes.
func (b *browser) seesNodes(address string) {
	b.t.Helper()
	b.do(chromedp.Navigate(address), chromedp.WaitVisible("#nodes table"))
}

func (b *browser) picture(address, scheme string, width, height int64, file string) {
	b.t.Helper()
	var shot []byte
	b.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
		emulation.SetDeviceMetricsOverride(width, height, 1, width < 500),
		chromedp.Navigate(address), chromedp.WaitVisible("main h1"))
	<-time.After(300 * time.Millisecond) // the state of the stream
	b.do(chromedp.CaptureScreenshot(&shot))
	decoded, err := png.Decode(bytes.NewReader(shot))
	require.NoError(b.t, err)
	var out bytes.Buffer
	require.NoError(b.t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, flat(decoded)))
	require.Less(b.t, out.Len(), maxPicture, file)
	require.NoError(b.t, os.WriteFile(file, out.Bytes(), 0o644))
}

// flat reduces a picture to its 64 most frequent colours, which suffice for text.
func flat(from image.Image) image.Image {
	bounds, count := from.Bounds(), map[color.RGBA]int{}
	at := func(x, y int) color.RGBA {
		r, g, b, _ := from.At(x, y).RGBA()
		return color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 255}
	}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	colours := make([]color.RGBA, 0, len(count))
	for c := range count {
		colours = append(colours, c)
	}
	slices.SortFunc(colours, func(a, b color.RGBA) int { return count[b] - count[a] })
	palette := color.Palette{}
	for _, c := range colours[:min(len(colours), 64)] {
		palette = append(palette, c)
	}
	to, nearest := image.NewPaletted(bounds, palette), map[color.RGBA]uint8{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := at(x, y)
			i, known := nearest[c]
			if !known {
				i = uint8(palette.Index(c))
				nearest[c] = i
			}
			to.SetColorIndex(x, y, i)
		}
	}
	return to
}
