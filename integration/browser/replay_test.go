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
	p.noProblems()
}

// tried returns how many requests and clients --try says that a limit refuses.
func tried(t *testing.T, dir, zone, limit string) (numbers [2]string) {
	t.Helper()
	var result struct {
		Zones []struct {
			WhatIf []struct {
				Limit       string
				Refused     int
				KeysRefused int `json:"keys_refused"`
			} `json:"what_if"`
		}
	}
	must(t, json.Unmarshal(runReplay(t, dir, "access.log", "--json", "--zone", zone, "--try", zone+"="+limit), &result))
	for _, w := range result.Zones[0].WhatIf {
		if w.Limit == limit {
			return [2]string{fmt.Sprint(w.Refused), fmt.Sprint(w.KeysRefused)}
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
		p.until("the day", `document.querySelector('.uplot canvas')`)
		savePicture(t, filepath.Join(to, name), p.screenshot())
	}
}
