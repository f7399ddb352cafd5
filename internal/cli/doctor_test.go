package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/advice"
)

// diagnosed is what doctor prints of the findings of instances, and the worst level. Compared is what comparing them has found.
func diagnosed(s *screen, compared []adminapi.Finding, instances ...[]adminapi.Finding) (text, worst string) {
	c := &instance{screen: s, view: new(adminapi.FleetAnswer)}
	all := slices.Clone(compared)
	for i, findings := range instances {
		name := fmt.Sprint("caddy-", i)
		c.view.Instances = append(c.view.Instances, adminapi.Instance{Name: name, State: adminapi.StateReports})
		for _, f := range findings {
			f.Instance = name
			all = append(all, f)
		}
	}
	slices.SortStableFunc(all, adminapi.WorseFirst)
	problems := problems(all)
	if len(problems) > 0 {
		worst = problems[0].Level
	}
	return c.verdict(problems), worst
}

// TestDiagnosisFits: whatever names and errors say, no line is wider than the terminal, nothing in them is interpreted, and a
// person sees the worst without scrolling.
func TestDiagnosisFits(t *testing.T) {
	hostile := "\x1b[31m\x00\r\nzone \u202e" + strings.Repeat("x", 200)
	findings := []adminapi.Finding{
		{Level: adminapi.LevelFail, Check: "answer", Store: hostile, Found: "does not answer: " + hostile, Fix: advice.New("hostile", "%s").With(hostile)},
		{Level: adminapi.LevelUnknown, Check: "fleet", Store: "redis", Found: ""},
		{Level: adminapi.LevelWarn, Check: "keys", Zone: "\x1b[2J\n", Found: "one key", Fix: advice.New("another", "another").With()},
		{Level: "other, and longer than any", Check: "of another version, and longer than any", Server: "a b", Found: "x"},
	}
	for width, most := range map[int]int{0: 80, 80: 80, 120: 120, 10: 80} {
		text, worst := diagnosed(&screen{width: width}, nil, findings)
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			if n := utf8.RuneCountInString(line); n > most || strings.ContainsAny(line, "\x1b\x00\r\u202e") {
				t.Errorf("width %d: %d columns: %q", width, n, line)
			}
		}
		if !strings.HasPrefix(text, "1 fail and 1 warn.\n\nfail answer: store") || worst != adminapi.LevelFail {
			t.Errorf("width %d, %s:\n%s", width, worst, text)
		}
	}
	if text, _ := diagnosed(new(screen), nil, nil); text != "Nothing is wrong.\n" {
		t.Errorf("all is well:\n%s", text)
	}
	if text, _ := diagnosed(&screen{color: true}, nil, findings); !strings.Contains(text, red+"fail"+noColor) {
		t.Error(text)
	}
	var many []adminapi.Finding
	for i := range 100 {
		many = append(many, adminapi.Finding{Level: adminapi.LevelWarn, Check: "rollout", Zone: fmt.Sprint(i), Found: fmt.Sprintf("refuses %d", i)})
	}
	many = append(many, findings[0])
	text, _ := diagnosed(&screen{terminal: true}, nil, many)
	if n := strings.Count(text, "\n"); n > maxLines || n < maxLines-2 || !strings.Contains(text, "\nfail answer") || !strings.HasSuffix(text, " more are in --json.\n") {
		t.Errorf("%d lines:\n%s", n, text)
	}
	if text, _ := diagnosed(new(screen), nil, many); !strings.Contains(text, "refuses 99\n") {
		t.Errorf("in a file:\n%s", text)
	}
}

// TestOneProblemForZones: what several zones have in common, because their store does not answer, is said once with their names.
// What only one has, or another store, stays its own.
func TestOneProblemForZones(t *testing.T) {
	see := advice.New("see", "see store %s")
	finding := func(zone, level, found, store string) adminapi.Finding {
		return adminapi.Finding{Level: level, Check: "on_store_error", Zone: zone, Found: found, Fix: see.With(store)}
	}
	text, _ := diagnosed(&screen{width: 60}, nil, []adminapi.Finding{
		finding("a", adminapi.LevelWarn, "each counts for itself", "x"),
		finding("b c", adminapi.LevelWarn, "each counts for itself", "x"),
		finding("d", adminapi.LevelFail, "it refuses all", "x"),
		finding("e", adminapi.LevelWarn, "each counts for itself", "y"),
		finding("f", adminapi.LevelWarn, "each counts for itself", "x"),
	})
	const want = `1 fail and 2 warn.

fail on_store_error: zone d
    it refuses all
    fix: see store x
warn on_store_error: zones a, 'b c', f
    each counts for itself
    fix: see store x
warn on_store_error: zone e
    each counts for itself
    fix: see store y
`
	if text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	var many []adminapi.Finding
	for i := range 100 {
		many = append(many, finding(fmt.Sprint("zone-", i), adminapi.LevelWarn, "each counts for itself", "x"))
	}
	if text, _ := diagnosed(new(screen), nil, many); strings.Count(text, "each counts") != 1 || !strings.Contains(text, "zone-4, and 95") {
		t.Errorf("a hundred zones:\n%s", text)
	}
}

// TestOneProblemForInstances: what several instances have found is one problem, whatever the figures are. What only some find
// wrong names them.
func TestOneProblemForInstances(t *testing.T) {
	of := func(found ...string) (all []adminapi.Finding) {
		for _, text := range found {
			all = append(all, adminapi.Finding{Level: adminapi.LevelWarn, Check: "config", Zone: "z", Found: text})
		}
		return all
	}
	for name, c := range map[string]struct {
		a, b []adminapi.Finding
		want string // of the problems, whose they are
	}{
		"figures":       {of("uses 1922 KiB of 1.5 GiB, after 300ms"), of("uses 2 MiB of 1.5 GiB, after 1.02s"), "zone z"},
		"other words":   {of("the key is a constant", "one more"), of("the cost is 5"), "zone z on caddy-0; zone z on caddy-0; zone z on caddy-1"},
		"one of them":   {of("the key is a constant", "the cost is 5"), of("the cost is 6"), "zone z on caddy-0; zone z"},
		"no difference": {of("x", "y"), of("y", "x"), "zone z; zone z"},
	} {
		text, _ := diagnosed(new(screen), nil, c.a, c.b)
		var got []string
		for line := range strings.Lines(text) {
			if _, whose, found := strings.Cut(strings.TrimSpace(line), "config: "); found {
				got = append(got, whose)
			}
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s: %q, want %q:\n%s", name, got, c.want, text)
		}
	}
}

// TestVerdict: the first line sums up what is wrong, each problem once, and the worst comes first.
func TestVerdict(t *testing.T) {
	unknown := adminapi.Finding{Level: adminapi.LevelUnknown, Check: "memory", Store: "redis", Found: "cannot say"}
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
		{"one instance", nil, [][]adminapi.Finding{{warn, fail}}, "1 fail and 1 warn.", adminapi.LevelFail},
		{"not known", nil, [][]adminapi.Finding{{unknown}}, "Nothing is wrong as far as could be checked.", adminapi.LevelUnknown},
		{"one is wrong", nil, [][]adminapi.Finding{{warn}, {warn, fail}}, "1 fail and 1 warn in a fleet of 2.", adminapi.LevelFail},
		{"they differ", []adminapi.Finding{apart}, [][]adminapi.Finding{{}, {}, {}}, "1 fail and 0 warn in a fleet of 3.", adminapi.LevelFail},
		{"all warn", nil, [][]adminapi.Finding{{warn}, {warn}}, "0 fail and 1 warn in a fleet of 2.", adminapi.LevelWarn},
		{"they differ less", []adminapi.Finding{warn}, [][]adminapi.Finding{{fail}, {fail}}, "1 fail and 1 warn in a fleet of 2.", adminapi.LevelFail},
		{"all is well", []adminapi.Finding{}, [][]adminapi.Finding{{}, {}}, "Nothing is wrong in a fleet of 2.", ""},
	} {
		text, level := diagnosed(new(screen), test.compared, test.instances...)
		first, _, _ := strings.Cut(text, "\n")
		if at := strings.Index(text, "\nfail "); at > 0 && strings.Contains(text[:at], "\nwarn ") {
			t.Errorf("%s: what fails does not come first:\n%s", test.name, text)
		}
		if first != test.want || level != test.level {
			t.Errorf("%s: got %q, %s; want %q, %s", test.name, first, level, test.want, test.level)
		}
	}
}
