package browser

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestScreenshots draws the page in a flood into the directory that SCREENSHOTS names: docs/page.png and docs/page-dark.png.
func TestScreenshots(t *testing.T) {
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		t.Skip("SCREENSHOTS names no directory")
	}
	browser, redis := startChromium(t), redistest.Start(t)
	options := `
	servers {
		trusted_proxies static 127.0.0.1
	}
	rate_limit {
		store redis {
			address ` + redis.Addr() + `
		}
	}`
	site := `
	rate_limit {
		zone clients {
			key {client_ip}
			rate 100/1m
			overrides
			ban 10m after 400 refusals in 1m
		}
		zone logins {
			match path /login
			key "{client_ip} {header.User}"
			algorithm token_bucket 5/1m
			burst 10
			overrides
		}
		zone search {
			match path /search
			key {client_ip}
			algorithm sliding_window_counter 20/10s
			enforce 0
		}
	}
	respond ok`
	one := startCaddy(t, options, site)
	startCaddy(t, options, site)
	p := browser.newTab(t)
	p.resize(1280, 1000, "light")
	p.open(one.page())
	sent := 0
	p.untilDoing("a calm page", func() {
		if sent++; sent < 60 { // more would be refused
			one.get("/", "X-Forwarded-For: 203.0.113.1")
		}
	}, `document.getElementById('level').innerText === 'Calm' && document.querySelector('.spark .line')?.getAttribute('d')`)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		agents := []string{"Mozilla/5.0 (X11; Linux x86_64; rv:148.0) Gecko/20100101 Firefox/148.0", "python-requests/2.34.1", "curl/8.17.0", "Go-http-client/2.0"}
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			client, agent := fmt.Sprintf("203.0.113.%d", i%7+i%3*(i%5)), "User-Agent: "+agents[i%4]
			one.get("/", "X-Forwarded-For: 198.51.100.23", "User-Agent: "+agents[1])
			one.get("/search?q=a", "X-Forwarded-For: "+client, agent)
			if i%9 == 0 {
				one.get("/login", "X-Forwarded-For: 2001:db8:a::"+fmt.Sprint(i%3), "User: alice", agent)
			}
			time.Sleep(time.Duration(8+i%40) * time.Millisecond)
		}
	}()
	defer func() {
		close(stop)
		<-done
	}()
	p.resize(1100, 1000, "light")
	p.until("clients that are refused, with their requests", `document.getElementById('level').innerText === 'Refusing' && [...document.querySelectorAll('.refused .request')].filter(e => e.innerText !== '–').length >= 5`)
	third := eval[int](p, `Math.round(document.querySelectorAll('[data-zone]')[2].getBoundingClientRect().bottom + scrollY)`)
	savePicture(t, filepath.Join(dir, "page.png"), p.part(0, third))
	p.resize(1100, 1000, "dark")
	savePicture(t, filepath.Join(dir, "page-dark.png"), p.part(0, third))
}

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
