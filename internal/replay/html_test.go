package replay_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/replay/logs"
)

// aDay makes the result of a day with so many clients. The names and agents end with a text.
func aDay(clients int, text string) *replay.Result {
	start := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	first := start.Add(134 * time.Minute)
	series := func(scale float64, busy func(minute int) float64) replay.Series {
		s := replay.Series{Start: start, Step: time.Minute, Admitted: make([]int64, 1440), Refused: make([]int64, 1440)}
		for i := range 1440 {
			s.Admitted[i] = int64(scale * (1.2 + math.Sin(float64(i)/230-2)) * (1 + 0.1*math.Sin(float64(i*i%97))))
			s.Refused[i] = int64(scale * busy(i))
		}
		return s
	}
	z := &replay.Zone{
		Name: "clients" + text, Limit: "sliding_window_log 100/1m", Key: "{client_ip}" + text, Events: 100, Window: 60,
		Requests: 3_398_004, Keys: clients, Refused: 21_440, KeysRefused: 38, FirstRefused: &first,
		Busiest: &replay.Peak{Key: "198.51.100.7" + text, Used: 97},
		Series: series(900, func(i int) float64 {
			if i > 130 && i < 150 || i > 800 && i < 810 {
				return 1.3
			}
			return 0
		}),
		Networks:   []replay.RefusedNetwork{{Network: "203.0.113.0/24", Keys: 20, KeysRefused: 20, Requests: 52_000, Refused: 21_000}},
		Suggestion: &replay.Suggestion{Limit: "200/1m", Events: 200, Reasons: []string{"3 clients hold 84 % of what would be refused" + text, "twice the 99th percentile is 150"}},
	}
	for i := range clients {
		z.Peaks = append(z.Peaks, int64(4000/math.Pow(float64(i+1), 0.75)))
		if i < 1000 {
			z.PeakKeys = append(z.PeakKeys, fmt.Sprintf("203.0.%d.%d%s", i/256, i%256, text))
		}
	}
	for i := range min(20, clients) {
		k := &replay.Key{
			Key: fmt.Sprintf("203.0.113.%d%s", i, text), Requests: int64(14_533 / (i + 1)), Refused: int64(12_804 / (i + 1)), FirstRefused: first, Peak: 4000,
			Status: map[int]int64{200: 96, 404: 4}, Agent: "python-requests/2.32" + text,
			Series: series(9, func(m int) float64 {
				if (m/(20+i*10))%(i%4+1) == 0 {
					return 3
				}
				return 0
			}),
		}
		if i > 2 {
			k.Signs = []string{"cookie"}
		}
		z.Top = append(z.Top, k)
	}
	for _, n := range []int64{1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 5000} {
		w := replay.WhatIf{Limit: fmt.Sprintf("%d/1m", n), Events: n, Window: 60, Configured: n == 100, Suggested: n == 200}
		for _, p := range z.Peaks {
			if p > n {
				w.KeysRefused++
				w.Refused += (p - n) * 3
			}
		}
		z.WhatIf = append(z.WhatIf, w)
	}
	return &replay.Result{
		Networks: []replay.Network{{Network: "192.0.2.0/24", Clients: 250, Requests: 3000, Agent: "python-requests/2.32" + text}},
		Unknown:  []replay.Unknown{{Zone: "api", Option: "key", What: "the header X-Api-Key is not in the logs" + text, Assumed: "it is treated as empty"}},
		Zones:    []*replay.Zone{z}, Logs: []replay.Log{{Name: "access.log" + text, Format: "caddy", Lines: 3_412_118}}, Lines: 3_412_130, NotUnderstood: 12,
		FirstBad: &logs.Bad{Log: "access.log", Line: 88121, Text: "garbage" + text, Why: "no client address"},
		Requests: 3_412_118, Clients: clients, From: start, To: start.Add(24*time.Hour - time.Second),
	}
}

func page(t *testing.T, r *replay.Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPageIsSmall: the page of 50,000 clients has at most 400 kB, with one zone or several.
func TestPageIsSmall(t *testing.T) {
	t.Parallel()
	r := aDay(50_000, "")
	for _, zones := range []int{1, 4, 20} {
		for len(r.Zones) < zones {
			r.Zones = append(r.Zones, r.Zones[0])
		}
		size := len(page(t, r))
		t.Logf("%d zones: %d kB", zones, size/1000)
		if size > 400_000 && zones < 20 {
			t.Errorf("%d zones: %d bytes", zones, size)
		}
	}
}

// hostile are texts that would leave their place in a page that was not careful.
var hostile = []string{
	`</script><script>alert(1)</script>`, `<!--<script>`, `--><img src=x onerror=alert(1)>`, `"><svg onload=alert(1)>`, `{{.Data}}`, "\u2028\u2029", "]]>", `\u003c/script>`,
	"\x00\x1b[31m\u202e", strings.Repeat("<script>", 1000), "\xff\xfe", `'"` + "`${alert(1)}",
}

// TestHostilePage: no text of a log ends the element that it is in, and the data is still JSON. The policy
// of the page names its own scripts alone. In a browser, integration/browser tests the same.
func TestHostilePage(t *testing.T) {
	t.Parallel()
	plain := page(t, aDay(2, ""))
	tags := regexp.MustCompile(`(?i)<[/!a-z][^\s>]*`)
	block := regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`)
	for _, text := range hostile {
		got := page(t, aDay(2, text))
		data := block.FindStringSubmatch(got)
		if data == nil || !json.Valid([]byte(data[1])) || strings.ContainsAny(data[1], "<>&\u2028\u2029\u202e\x00") {
			t.Fatalf("%q: the data is %s", text, data)
		}
		without := strings.Replace(got, data[1], "", 1)
		if want := strings.Replace(plain, block.FindStringSubmatch(plain)[1], "", 1); without != want {
			t.Errorf("%q: it has changed more than the data: %q, want %q", text, tags.FindAllString(without, -1), tags.FindAllString(want, -1))
		}
	}
	if !regexp.MustCompile(`default-src 'none'; script-src 'sha256-[^']+' 'sha256-[^']+'; style-src 'sha256-`).MatchString(plain) || strings.Contains(plain, "unsafe") {
		t.Error("the policy allows more than the page's own scripts and styles")
	}
	if other := regexp.MustCompile(`(?i)(src|href|action)\s*=|url\([^#]|@import|fetch\(|XMLHttp|innerHTML|insertAdjacentHTML|document\.write|eval\(`).FindAllString(plain, -1); len(other) > 0 {
		t.Errorf("the page has %q", other)
	}
}

// TestPageOpensOnTheMostAffected: the first zone of the page is the one that would refuse most.
func TestPageOpensOnTheMostAffected(t *testing.T) {
	r := aDay(10, "")
	r.Zones = append([]*replay.Zone{{Name: "api", Requests: 5_000_000}, {Name: "empty"}}, r.Zones...)
	text := page(t, r)
	at := func(zone string) int { return strings.Index(text, `"name":"`+zone+`"`) }
	if at("clients") < 0 || at("clients") > at("api") || at("api") > at("empty") || r.Zones[0].Name != "api" {
		t.Errorf("clients, api and empty are at %d, %d and %d", at("clients"), at("api"), at("empty"))
	}
}
