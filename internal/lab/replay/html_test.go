package replay_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay"
)

// aDay is the report of a day with so many clients, whose names and agents end with a text.
func aDay(clients int, text string) *replay.Result {
	r := report()
	r.Zones = r.Zones[1:]
	z, start := r.Zones[0], at("00:00:00")
	series := func(scale float64, busy func(minute int) float64) replay.Series {
		s := replay.Series{Start: start.UnixMilli(), Step: 60_000, Admitted: make([]int64, 1440), Refused: make([]int64, 1440)}
		for i := range 1440 {
			s.Admitted[i] = int64(scale * (1.2 + math.Sin(float64(i)/230-2)) * (1 + 0.1*math.Sin(float64(i*i%97))))
			s.Refused[i] = int64(scale * busy(i))
		}
		return s
	}
	z.Name, z.Key, z.Busiest.Key, z.Suggestion.Reasons[0] = z.Name+text, z.Key+text, z.Busiest.Key+text, z.Suggestion.Reasons[0]+text
	r.Unknown[0] += text
	r.Logs[0].Name += text
	r.FirstBad[0] += text
	z.Series = series(900, func(i int) float64 {
		if i > 130 && i < 150 || i > 800 && i < 810 {
			return 1.3
		}
		return 0
	})
	var peaks []int64
	for i := range clients {
		peaks = append(peaks, int64(4000/math.Pow(float64(i+1), 0.75)))
		if i < 1000 {
			z.PeakKeys = append(z.PeakKeys, fmt.Sprintf("203.0.%d.%d%s", i/256, i%256, text))
		}
	}
	z.Peaks = replay.Ranks(peaks)
	first := *z.Top[0]
	z.Top = nil
	strip := func(scale float64, busy func(minute int) float64) replay.Series {
		s := series(scale, busy)
		s.Step, s.Admitted, s.Refused = 10*s.Step, s.Admitted[:144], s.Refused[:144]
		return s
	}
	for i := range min(20, clients) {
		k := first
		k.Key, k.Agent = fmt.Sprintf("203.0.113.%d%s", i, text), k.Agent+text
		k.Series = strip(9, func(m int) float64 {
			if (m/(20+i*10))%(i%4+1) == 0 {
				return 3
			}
			return 0
		})
		z.Top = append(z.Top, &k)
	}
	return r
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
// of the page names its own script alone. In a browser, integration/browser tests the same.
func TestHostilePage(t *testing.T) {
	t.Parallel()
	plain := page(t, aDay(2, ""))
	tags := regexp.MustCompile(`(?i)<[/!a-z][^\s>]*`)
	block := regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`)
	for _, text := range hostile {
		got := page(t, aDay(2, text))
		data := block.FindStringSubmatch(got)
		if data == nil || !json.Valid([]byte(data[1])) || strings.ContainsAny(data[1], "<>&\u2028\u2029\x00") {
			t.Fatalf("%q: the data is %s", text, data)
		}
		without := strings.Replace(got, data[1], "", 1)
		if want := strings.Replace(plain, block.FindStringSubmatch(plain)[1], "", 1); without != want {
			t.Errorf("%q: it has changed more than the data: %q, want %q", text, tags.FindAllString(without, -1), tags.FindAllString(want, -1))
		}
	}
	if !regexp.MustCompile(`default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+';`).MatchString(plain) || strings.Contains(plain, "unsafe") {
		t.Error("the policy allows more than the page's own script and style")
	}
	if other := regexp.MustCompile(`(?i)(src|href|action)\s*=|url\([^#]|@import|fetch\(|XMLHttp|innerHTML|insertAdjacentHTML|document\.write|eval\(`).FindAllString(plain, -1); len(other) > 0 {
		t.Errorf("the page has %q", other)
	}
}

// TestNamesOnce: the parts of the page's script, some of which are modules elsewhere, declare each name once. Otherwise none of it runs.
func TestNamesOnce(t *testing.T) {
	seen := make(map[string]bool)
	for _, found := range regexp.MustCompile(`(?m)^(?:const|let|class|(?:async )?function\*?) (\w+)`).FindAllStringSubmatch(page(t, aDay(1, "x")), -1) {
		name := found[1]
		if seen[name] {
			t.Errorf("%s is declared twice", name)
		}
		seen[name] = true
	}
	if len(seen) < 30 {
		t.Errorf("only %d names were found", len(seen))
	}
}
