package browser

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// limits is a config to replay a log with.
const limits = `
http://example.com {
	rate_limit {
		zone clients {
			key {client_ip}
			algorithm sliding_window_log 20/1m
		}
		zone keys {
			key {header.X-Api-Key}
			rate 30/1m
		}
	}
	respond ok
}
`

// logLine is a line of Caddy's access log.
func logLine(at time.Time, ip, key, agent string) string {
	text, err := json.Marshal(map[string]any{
		"level": "info", "ts": float64(at.UnixMicro()) / 1e6, "logger": "http.log.access", "msg": "handled request", "duration": 0, "status": 200, "size": 2,
		"request": map[string]any{
			"remote_ip": ip, "client_ip": ip, "proto": "HTTP/1.1", "method": "GET", "host": "example.com", "uri": "/" + fmt.Sprint(at.Unix()%9),
			"headers": map[string][]string{"X-Api-Key": {key}, "User-Agent": {agent}},
		},
	})
	if err != nil {
		panic(err)
	}
	return string(text) + "\n"
}

// replayLog writes a log and a config, and runs the command.
func replayLog(t *testing.T, arguments ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	var log strings.Builder
	var texts []string
	for _, text := range hostile() {
		if len(text) < 10_000 {
			texts = append(texts, text)
		}
	}
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	for i := range 100 { // a program that changes its address
		log.WriteString(logLine(at, fmt.Sprintf("198.51.100.%d", i), "", "scrape/1"))
	}
	for i := range 3000 {
		ip, text := fmt.Sprintf("192.0.2.%d", i%40+1), texts[i%len(texts)]
		if i%3 == 0 {
			ip, text = "203.0.113.7", texts[i/3%20]
		}
		log.WriteString(logLine(at.Add(time.Duration(i)*500*time.Millisecond), ip, text, text))
	}
	log.WriteString(texts[0] + "\n")
	must(t, os.WriteFile(filepath.Join(dir, "access.log"), []byte(log.String()), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "Caddyfile"), []byte(limits), 0o600))
	runReplay(t, dir, append([]string{"access.log"}, arguments...)...)
	return dir
}

// runReplay runs the command in a directory, and returns what it prints.
func runReplay(t *testing.T, dir string, arguments ...string) []byte {
	t.Helper()
	binary, err := buildCaddy()
	must(t, err)
	cmd := exec.Command(binary, append([]string{"rate-limit", "replay"}, arguments...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir, "TZ=UTC")
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return output
}

// TestReplayPage: the page of a replay works from the disk, without a request to any host and without an
// error. A dragged limit shows what --try says of it, by mouse and by keys. No text of the log runs.
func TestReplayPage(t *testing.T) {
	t.Parallel()
	dir := replayLog(t, "--html", "report.html")
	p := startChromium(t).newTab(t)
	p.resize(1100, 900, "light")
	p.open("file://" + filepath.Join(dir, "report.html"))
	p.untilText("h2", "Zone clients")
	p.until("the day", `document.querySelector('svg .day')`)
	said := eval[[]string](p, `[...document.querySelector('main').children].map(e => e.innerText)`)
	for i, want := range []string{"Zone clients would have refused 16.1% of its requests, and 1 of 141 clients.", "Nov 20, 2026", "3,100 requests of 141 clients"} {
		if !strings.HasPrefix(said[i], want) {
			t.Errorf("the page begins with %q, want %q", said[i], want)
		}
	}
	if options := eval[[]string](p, `[...document.querySelectorAll('option')].map(e => e.text.replace(/: .*/, ''))`); strings.Join(options, " ") != "clients keys" {
		t.Errorf("zones %q, want the one that is affected most first", options)
	}

	for _, zone := range []string{"clients", "keys"} {
		if zone == "keys" {
			must(t, p.try(`(() => { const s = document.querySelector('select'); s.value = 1; s.dispatchEvent(new Event('change')) })()`, nil))
			p.untilText("h2", "Zone keys")
		}
		if n := eval[int](p, `window.ran || document.querySelectorAll('iframe, img, a').length`); n != 0 {
			t.Errorf("zone %s: a text of the log has run, or become an element", zone)
		}
		if wide := eval[int](p, `document.documentElement.scrollWidth`); wide > 1100 {
			t.Errorf("zone %s: the page is %d pixels wide", zone, wide)
		}
		moves := []func(){func() { p.key("ArrowLeft", 37) }, func() { p.key("ArrowLeft", 37) }, func() { p.key("End", 35) }, func() { p.drag("svg.drag", 0.35) }, func() { p.drag("svg.drag", 0.7) }}
		seen := map[string]bool{}
		must(t, p.try(`document.querySelector('input[type=range]').focus()`, nil))
		for i, move := range moves {
			move()
			shown := eval[[]string](p, `[...document.querySelectorAll('.live output')].map(o => o.textContent.replace(/ .*|,/g, ''))`)
			seen[strings.Join(shown, " ")] = true
			if zone == "keys" && i > 1 {
				break // each replay costs time
			}
			if want := tried(t, dir, zone, shown[0]); want[0] != shown[1] || want[1] != shown[2] {
				t.Errorf("zone %s at %s: it shows %s requests and %s clients, and --try says %s and %s", zone, shown[0], shown[1], shown[2], want[0], want[1])
			}
		}
		if len(seen) < 3 {
			t.Errorf("zone %s: the limit does not move: %v", zone, seen)
		}
	}

	p.drag("svg:has(.day)", 0.6)
	if tip := eval[string](p, `document.querySelector('.tip').textContent`); !strings.HasSuffix(tip, " refused") || !strings.Contains(tip, " admitted, ") {
		t.Errorf("under the mouse the day says %q", tip)
	}
	p.accessible("light")
	p.resize(400, 900, "dark")
	p.until("the narrow page", `document.documentElement.scrollWidth <= 400 && getComputedStyle(document.body).backgroundColor === 'rgb(22, 27, 34)'`)
	p.accessible("narrow and dark")
	if other := eval[[]string](p, `performance.getEntriesByType('resource').map(e => e.name)`); len(other) > 0 {
		t.Errorf("the page has asked for %q", other)
	}
	must(t, os.WriteFile(filepath.Join(dir, "Caddyfile"), []byte(strings.Replace(limits, "20/1m", "1/1m", 1)), 0o600)) // which refuses many
	runReplay(t, dir, "access.log", "--html", "many.html")
	p.open("file://" + filepath.Join(dir, "many.html"))
	p.untilText("h2", "Zone clients")
	if all := eval[string](p, `document.querySelector('main').innerText`); strings.Contains(all, "undefined") {
		t.Errorf("a page of many refusals says %q", all)
	}
	p.noProblems()
}

// tried returns how many requests and clients --try says that a limit refuses.
func tried(t *testing.T, dir, zone, limit string) (numbers [2]string) {
	t.Helper()
	var result struct {
		Zones []struct {
			Name   string
			WhatIf []struct {
				Limit       string
				Refused     int
				KeysRefused int `json:"keys_refused"`
			} `json:"what_if"`
		}
	}
	must(t, json.Unmarshal(runReplay(t, dir, "access.log", "--json", "--try", zone+"="+limit), &result))
	for _, z := range result.Zones {
		for _, w := range z.WhatIf {
			if z.Name == zone && w.Limit == limit {
				return [2]string{fmt.Sprint(w.Refused), fmt.Sprint(w.KeysRefused)}
			}
		}
	}
	return numbers
}

// key presses a key that moves a slider.
func (p *tab) key(name string, code int) {
	p.t.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		p.do("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": name, "code": name, "windowsVirtualKeyCode": code}, nil)
	}
}

// drag pulls the mouse within an element to a part of its height from the top.
func (p *tab) drag(selector string, to float64) {
	p.t.Helper()
	box := eval[struct{ X, Y, Width, Height float64 }](p, fmt.Sprintf(`(() => { const e = document.querySelector(%s); e.scrollIntoView({block: 'center', behavior: 'instant'}); return e.getBoundingClientRect().toJSON() })()`, quoted(selector)))
	x := box.X + box.Width/2
	for _, event := range []struct {
		kind string
		y    float64
	}{{"mousePressed", 0.5}, {"mouseMoved", (0.5 + to) / 2}, {"mouseMoved", to}, {"mouseReleased", to}} {
		p.do("Input.dispatchMouseEvent", map[string]any{"type": event.kind, "x": x, "y": box.Y + box.Height*event.y, "button": "left", "buttons": 1, "clickCount": 1}, nil)
	}
}

// TestReplayScreenshots draws the page of the log in testdata/replay into the directory that SCREENSHOTS names: docs/replay.png
// and docs/replay-dark.png.
func TestReplayScreenshots(t *testing.T) {
	to := os.Getenv("SCREENSHOTS")
	if to == "" {
		t.Skip("SCREENSHOTS names no directory")
	}
	dir := t.TempDir()
	must(t, os.CopyFS(dir, os.DirFS("../../testdata/replay")))
	runReplay(t, dir, "access.log.gz", "--suggest", "--html", "report.html")
	p := startChromium(t).newTab(t)
	for scheme, name := range map[string]string{"light": "replay.png", "dark": "replay-dark.png"} {
		p.resize(900, 700, scheme)
		p.open("file://" + filepath.Join(dir, "report.html"))
		p.until("the day", `document.querySelector('svg .day')`)
		savePicture(t, filepath.Join(to, name), p.screenshot())
	}
}
