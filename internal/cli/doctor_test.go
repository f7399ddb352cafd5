package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/advice"
)

// TestDiagnosisFits: whatever names and errors say, no line is wider than the terminal, nothing in them
// is interpreted, and two hundred zones that are well are only counted.
func TestDiagnosisFits(t *testing.T) {
	hostile := "\x1b[31m\x00\r\nzone \u202e" + strings.Repeat("x", 200)
	d := adminapi.Diagnosis{Level: adminapi.LevelFail, Findings: []adminapi.Finding{
		{Level: adminapi.LevelFail, Check: "answer", Store: "redis", Found: "does not answer: " + hostile, Fix: advice.New("hostile", "%s").With(hostile)},
		{Level: adminapi.LevelUnknown, Check: "fleet", Store: "redis", Found: ""},
		{Level: adminapi.LevelWarn, Check: "keys", Zone: "\x1b[2J\n", Found: "one key", Fix: advice.New("another", "another").With()},
		{Level: "other", Check: "of another version, and longer than any", Server: "a b", Found: "x"},
	}}
	for i := range 200 {
		d.Findings = append(d.Findings, adminapi.Finding{Level: adminapi.LevelOK, Check: "limit", Zone: fmt.Sprint(i), Found: "it can refuse"})
	}
	for width, most := range map[int]int{0: 80, 80: 80, 120: 120, 10: 80} {
		var out bytes.Buffer
		out.WriteString(diagnosed(&screen{width: width}, d.Findings))
		lines := 0
		for line := range strings.Lines(out.String()) {
			line = strings.TrimSuffix(line, "\n")
			lines++
			if n := utf8.RuneCountInString(line); n > most || strings.ContainsAny(line, "\x1b\x00\r\u202e") {
				t.Errorf("width %d: %d columns: %q", width, n, line)
			}
		}
		if lines > 60 || strings.Contains(out.String(), "it can refuse") || !strings.Contains(out.String(), "200 ok, 1 warn, 1 fail, 1 unknown\n") {
			t.Errorf("width %d: %d lines:\n%s", width, lines, out.String())
		}
	}
	if out := diagnosed(new(screen), d.Findings[4:]); out != "Nothing is wrong.\n\n200 ok, 0 warn, 0 fail\n" {
		t.Errorf("all is well:\n%s", out)
	}
	if out := diagnosed(&screen{color: true}, d.Findings); !strings.Contains(out, red+"fail"+noColor) {
		t.Error(out)
	}
}

func diagnosed(s *screen, findings []adminapi.Finding) string {
	var b strings.Builder
	s.diagnosis(&b, findings)
	return b.String()
}

// TestCommonFindings: what several instances have found is one finding. A check that is ok on each is one, too. What
// one instance finds wrong stays its own.
func TestCommonFindings(t *testing.T) {
	found := func(roundTrip string, more ...adminapi.Finding) answer[adminapi.Diagnosis] {
		return answer[adminapi.Diagnosis]{value: adminapi.Diagnosis{Findings: append([]adminapi.Finding{
			{Level: adminapi.LevelOK, Check: "answer", Store: "redis", Found: "it answers"},
			{Level: adminapi.LevelOK, Check: "round_trip", Store: "redis", Found: roundTrip},
			{Level: adminapi.LevelWarn, Check: "maxmemory", Store: "redis", Found: "no limit", Fix: advice.New("one", "set one").With()},
		}, more...)}}
	}
	wrong := adminapi.Finding{Level: adminapi.LevelFail, Check: "clock", Store: "redis", Found: "an hour apart"}
	answers := []answer[adminapi.Diagnosis]{found("1ms", wrong), found("2ms", adminapi.Finding{Level: adminapi.LevelOK, Check: "clock", Store: "redis", Found: "it agrees"})}
	var checks []string
	for _, f := range commonFindings(answers) {
		checks = append(checks, f.Check)
	}
	if got := strings.Join(checks, " "); got != "answer round_trip maxmemory" {
		t.Errorf("got %s", got)
	}
	of := func(found ...string) (a answer[adminapi.Diagnosis]) {
		for _, text := range found {
			a.value.Findings = append(a.value.Findings, adminapi.Finding{Level: adminapi.LevelWarn, Check: "config", Zone: "z", Found: text})
		}
		return a
	}
	for name, c := range map[string]struct {
		a, b answer[adminapi.Diagnosis]
		want int
	}{
		"figures":       {of("uses 1922 kB of 1.5 GB, after 300ms"), of("uses 2 MB of 1.5 GB, after 1.02s"), 1},
		"other words":   {of("the key is a constant", "one more"), of("the cost is 5"), 0},
		"one of them":   {of("the key is a constant", "the cost is 5"), of("the cost is 6"), 1},
		"no difference": {of("x", "y"), of("y", "x"), 2},
	} {
		if common := commonFindings([]answer[adminapi.Diagnosis]{c.a, c.b}); len(common) != c.want {
			t.Errorf("%s: %+v", name, common)
		}
	}
	if common := commonFindings(answers[:1]); common != nil {
		t.Errorf("one instance: %+v", common)
	}
}

// TestVerdict: what was found about several instances is summed up in the first line, each finding once. One instance has
// no such line.
func TestVerdict(t *testing.T) {
	ok := adminapi.Finding{Level: adminapi.LevelOK, Check: "answer", Store: "redis", Found: "it answers"}
	warn := adminapi.Finding{Level: adminapi.LevelWarn, Check: "maxmemory", Store: "redis", Found: "no limit"}
	fail := adminapi.Finding{Level: adminapi.LevelFail, Check: "clock", Store: "redis", Found: "an hour apart"}
	apart := adminapi.Finding{Level: adminapi.LevelFail, Check: "config", Found: "2 configs"}
	for _, test := range []struct {
		name      string
		compared  []adminapi.Finding
		instances [][]adminapi.Finding
		want      string // the first line
		level     string
	}{
		{"one instance", nil, [][]adminapi.Finding{{ok, fail}}, "store redis", adminapi.LevelFail},
		{"one is wrong", nil, [][]adminapi.Finding{{ok, warn}, {ok, warn, fail}}, "1 fail and 1 warn in a fleet of 2.", adminapi.LevelFail},
		{"they differ", []adminapi.Finding{apart}, [][]adminapi.Finding{{ok}, {ok}, {ok}}, "1 fail and 0 warn in a fleet of 3.", adminapi.LevelFail},
		{"all warn", nil, [][]adminapi.Finding{{ok, warn}, {warn, ok}}, "all 2 instances", adminapi.LevelWarn},
		{"they differ less", []adminapi.Finding{ok, warn}, [][]adminapi.Finding{{ok, fail}, {ok, fail}}, "1 fail and 1 warn in a fleet of 2.", adminapi.LevelFail},
		{"all is well", []adminapi.Finding{ok}, [][]adminapi.Finding{{ok}, {ok}}, "Nothing is wrong in a fleet of 2.", adminapi.LevelOK},
	} {
		f := &fleet{screen: new(screen)}
		if test.compared != nil {
			f.view = &adminapi.FleetAnswer{Found: test.compared}
		}
		var good []answer[adminapi.Diagnosis]
		for i, findings := range test.instances {
			f.caddys = append(f.caddys, &endpoint{address: fmt.Sprint("caddy-", i)})
			good = append(good, answer[adminapi.Diagnosis]{of: f.caddys[i], value: adminapi.Diagnosis{Findings: findings}})
		}
		sections := f.sections(good)
		verdict := f.verdict(sections, len(good))
		first, _, _ := strings.Cut(verdict, "\n")
		if at := strings.Index(verdict, "  fail "); at > 0 && strings.Contains(verdict[:at], "  warn ") || strings.Contains(verdict, "  ok ") {
			t.Errorf("%s: what fails does not come first, or something is well:\n%s", test.name, verdict)
		}
		level := adminapi.LevelOK
		for _, s := range sections {
			level = worse(level, s.level())
		}
		if first != test.want || level != test.level {
			t.Errorf("%s: got %q, %s; want %q, %s", test.name, first, level, test.want, test.level)
		}
	}
}
