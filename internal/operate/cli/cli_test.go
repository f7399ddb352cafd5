package cli

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/advice"
)

// diagnosed is what doctor prints of the findings in a fleet of so many instances, and the worst level.
func diagnosed(s *screen, instances int, findings []adminapi.Finding) (text, worst string) {
	c := &instance{screen: s, view: &adminapi.FleetAnswer{Instances: make([]adminapi.Instance, instances)}}
	slices.SortStableFunc(findings, adminapi.WorseFirst)
	if len(findings) > 0 {
		worst = findings[0].Level
	}
	return c.verdict(findings), worst
}

// TestDiagnosisFits: whatever names and errors say, no line is wider than the terminal, nothing in them is interpreted, and a
// person sees the worst without scrolling.
func TestDiagnosisFits(t *testing.T) {
	hostile := "\x1b[31m\x00\r\nzone \u202e" + strings.Repeat("x", 200)
	findings := []adminapi.Finding{
		{Level: adminapi.LevelFail, Check: "answer", Of: "store", Names: []string{hostile}, Found: "does not answer: " + hostile, Fix: advice.New("hostile", "%s").With(hostile)},
		{Level: adminapi.LevelUnknown, Check: "fleet", Of: "store", Names: []string{"redis"}, Found: ""},
		{Level: adminapi.LevelWarn, Check: "keys", Of: "zone", Names: []string{"\x1b[2J\n"}, Found: "one key", Fix: advice.New("another", "another").With()},
		{Level: "other, and longer than any", Check: "of another version, and longer than any", Of: "server", Names: []string{"a b"}, Found: "x"},
	}
	for width, most := range map[int]int{0: 80, 80: 80, 120: 120, 10: 80} {
		text, worst := diagnosed(&screen{width: width}, 1, findings)
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
	if text, _ := diagnosed(new(screen), 1, nil); text != "Nothing is wrong.\n" {
		t.Errorf("all is well:\n%s", text)
	}
	var many []adminapi.Finding
	for i := range 100 {
		many = append(many, adminapi.Finding{Level: adminapi.LevelWarn, Check: "rollout", Of: "zone", Names: []string{fmt.Sprint(i)}, Found: fmt.Sprintf("refuses %d", i)})
	}
	many = append(many, findings[0])
	text, _ := diagnosed(&screen{terminal: true}, 1, many)
	if n := strings.Count(text, "\n"); n > maxLines || n < maxLines-2 || !strings.Contains(text, "\nfail answer") || !strings.HasSuffix(text, " more are in --json.\n") {
		t.Errorf("%d lines:\n%s", n, text)
	}
	if text, _ := diagnosed(new(screen), 1, many); !strings.Contains(text, "refuses 99\n") {
		t.Errorf("in a file:\n%s", text)
	}
}

// TestNamesOfFindings: what several have in common is said once with their names, of zones with a few.
func TestNamesOfFindings(t *testing.T) {
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprint("zone-", i))
	}
	finding := func(level, of string, names ...string) adminapi.Finding {
		return adminapi.Finding{Level: level, Check: "config", Of: of, Names: names, Found: "it is so", Fix: advice.New("see", "see store %s").With("x")}
	}
	text, _ := diagnosed(&screen{width: 60}, 4, []adminapi.Finding{
		finding(adminapi.LevelFail, "zone", "d"), finding(adminapi.LevelFail, "instance", "a (process 1)", "c"),
		finding(adminapi.LevelWarn, "zone", many...), finding(adminapi.LevelWarn, ""),
	})
	const said = "\n    it is so\n    fix: see store x\n"
	want := "2 fail and 2 warn in a fleet of 4.\n\nfail config: zone d" + said + "fail config: instances a (process 1), c" + said +
		"warn config: zones zone-0, zone-1, zone-2, zone-3, zone-4,\n    and 95 more" + said + "warn config: config" + said
	if text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

// TestVerdict: the first line sums up what is wrong, each problem once, and the worst comes first.
func TestVerdict(t *testing.T) {
	unknown := adminapi.Finding{Level: adminapi.LevelUnknown, Check: "memory", Of: "store", Names: []string{"redis"}, Found: "cannot say"}
	warn := adminapi.Finding{Level: adminapi.LevelWarn, Check: "maxmemory", Of: "store", Names: []string{"redis"}, Found: "no limit"}
	fail := adminapi.Finding{Level: adminapi.LevelFail, Check: "clock", Of: "store", Names: []string{"redis"}, Found: "an hour apart"}
	for _, test := range []struct {
		name      string
		instances int
		findings  []adminapi.Finding
		want      string // the first line
		level     string
	}{
		{"one instance", 1, []adminapi.Finding{warn, fail}, "1 fail and 1 warn.", adminapi.LevelFail},
		{"not known", 1, []adminapi.Finding{unknown}, "Nothing is wrong as far as could be checked.", adminapi.LevelUnknown},
		{"a fleet", 3, []adminapi.Finding{warn, fail}, "1 fail and 1 warn in a fleet of 3.", adminapi.LevelFail},
		{"all is well", 2, nil, "Nothing is wrong in a fleet of 2.", ""},
	} {
		text, level := diagnosed(new(screen), test.instances, test.findings)
		first, _, _ := strings.Cut(text, "\n")
		if at := strings.Index(text, "\nfail "); at > 0 && strings.Contains(text[:at], "\nwarn ") {
			t.Errorf("%s: what fails does not come first:\n%s", test.name, text)
		}
		if first != test.want || level != test.level {
			t.Errorf("%s: got %q, %s; want %q, %s", test.name, first, level, test.want, test.level)
		}
	}
}

// TestComparison: what differs between two configs, in a terminal of 80 columns.
func TestComparison(t *testing.T) {
	c := &adminapi.Comparison{
		Zones: []adminapi.ZoneDiff{
			{Zone: "api", Kind: adminapi.ZoneChanged, Changes: []string{
				"key now {header.X-User}, was {client_ip}", `exempt now [{"client_ip":{"ranges":["192.0.2.0/24","198.51.100.0/24"]}}]`,
			}, Warnings: []string{"key: any client can choose header X-User"}},
			{Zone: "old", Kind: adminapi.ZoneGone, Changes: []string{"was fixed_window 5/1h"}},
			{Zone: "x`y", Kind: adminapi.ZoneNew, Changes: []string{"fixed_window 5/1h by {client_ip}"}},
		},
		Unjudged: []string{"server srv0 routes 1 handle 1 (map) mappings 2"},
		Log: &adminapi.LogDiff{
			Requests: 30, Clients: 2, Was: 1, Is: 4, More: 1,
			MoreOf: []adminapi.ClientDiff{{Client: "192.0.2.1|<b>", Requests: 20, Was: 1, Is: 4}},
		},
	}
	const terminal = `zone     api
changed  key now {header.X-User}, was {client_ip}
changed  exempt now
         [{"client_ip":{"ranges":["192.0.2.0/24","198.51.100.0/24"]}}]
warning  key: any client can choose header X-User

zone  old
gone  was fixed_window 5/1h

zone  'x` + "`" + `y'
new   fixed_window 5/1h by {client_ip}

This differs too where requests come to a limit, and may decide which of them it
counts. Test it with cases or a log:
  server srv0 routes 1 handle 1 (map) mappings 2

Of 30 requests by 2 clients, the old config refuses 1 and the new one 4. It
refuses 1 client more often, and 0 clients less often.

CLIENT           REQUESTS  REFUSED BEFORE  REFUSED NOW
'192.0.2.1|<b>'  20        1               4
`
	var b bytes.Buffer
	(&screen{out: &b, width: 80}).printComparison(c)
	if b.String() != terminal {
		t.Errorf("terminal: got\n%s\nwant\n%s", b.String(), terminal)
	}
}

// hangingUp is a listener that closes the first connections that it accepts.
type hangingUp struct {
	net.Listener
	left atomic.Int64
}

func (l *hangingUp) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || l.left.Add(-1) < 0 {
			return conn, err
		}
		_ = conn.Close()
	}
}

// TestQuestionsAreAskedAgain: a question whose connection breaks off is asked twice more, because a reload replaces
// the admin endpoint. A change is not made again, because it may have been made.
func TestQuestionsAreAskedAgain(t *testing.T) {
	for _, c := range []struct {
		method  string
		breaks  int64
		answers bool
	}{
		{http.MethodGet, 0, true},
		{http.MethodGet, maxRepeats, true},
		{http.MethodGet, maxRepeats + 1, false},
		{http.MethodPut, 0, true},
		{http.MethodPut, 1, false},
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		breaking := &hangingUp{Listener: listener}
		breaking.left.Store(c.breaks)
		server := &http.Server{ReadHeaderTimeout: time.Minute}
		go func() { _ = server.Serve(breaking) }()
		t.Cleanup(func() { _ = server.Close() })

		e := &instance{address: listener.Addr().String()}
		_, err = e.call(c.method, "zones", nil, nil)
		what := fmt.Sprintf("%s after %d broken connections", c.method, c.breaks)
		if c.answers != strings.HasPrefix(fmt.Sprint(err), "the Caddy at ") { // it has no such path
			t.Errorf("%s: %v", what, err)
		}
		if !c.answers && !strings.Contains(err.Error(), "is Caddy running") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
