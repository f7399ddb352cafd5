// Package integration_test tests what only the whole server shows, once for each promise. Three instances and a Redis serve
// all tests in turn: [harness.One] and [harness.Three] load a test's config through the admin API, and
// [harness.SharedStore] has a key prefix of its own. The folders below have what needs processes of its own, or time.
package integration_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// TestReadme: a hundred requests of a client pass the six lines of the README, and the command that it shows names the
// client that was refused. The config that it runs gives ten.
func TestReadme(t *testing.T) {
	six := regexp.MustCompile("(?s)## Six lines.*?```caddyfile\n(.*?)```").FindStringSubmatch(harness.ReadPage(t, harness.Root+"/README.md"))[1]
	b := harness.StartBackend(t, harness.AnswerAsAsked)
	s := harness.One(t, harness.Localize(six, harness.Memory, b.Address))
	client := harness.NewClient(t, "127.0.0.9")
	if n := s.Admitted(client, 102, "/"); n != 100 {
		t.Errorf("%d passed, want 100", n)
	}
	if output, err := s.RateLimit("top", "--refused"); err != nil || !regexp.MustCompile(`(?m)^clients +102 +2 +127\.0\.0\.9$`).MatchString(output) {
		t.Errorf("%v\n%s", err, output)
	}
	sample := strings.Replace(harness.ReadPage(t, harness.Root+"/testdata/Caddyfile"), ":8080", "example.com", 1)
	s.MustLoad(strings.Replace(harness.Localize(sample, harness.Memory, ""), "window 10s", "window 1h", 1))
	if a := s.Get(client, "/"); a.Body != "Hello, 127.0.0.9!" {
		t.Errorf("%q", a.Body)
	}
}

// TestFleetIsExact: of 300 requests that reach three instances at once, a limit of 100 lets 100 through, in each kind of
// window, also with lend.
func TestFleetIsExact(t *testing.T) {
	const requests, limit = 300, 100
	zones := map[string]string{
		"log": "sliding_window_log 100/1000h", "counter": "sliding_window_counter 100/1000h", "bucket": "token_bucket 100/1000h",
		"gcra": "gcra 100/1000h", "leaky": "leaky_bucket 100/1000h", "fixed": "fixed_window 100/1000h\nalign first_request",
		"year": "fixed_window 100/year", "lent": "fixed_window 100/1000h\nalign first_request\nlend 10s",
	}
	site, store := "", harness.SharedStore(t)
	for zone, algorithm := range zones {
		site += harness.Limited(zone, "algorithm "+algorithm, store, "respond ok")
	}
	fleet := harness.Three(t, harness.Caddyfile("", site))
	for zone := range zones {
		var passed sync.Map
		var group sync.WaitGroup
		for i := range requests / 10 {
			client := harness.NewClient(t, "")
			group.Go(func() {
				for n := range 10 {
					a, err := harness.Send(client, fleet[(i+n)%3].URL("/"+zone))
					switch {
					case err != nil || a.Status != http.StatusOK && a.Status != http.StatusTooManyRequests:
						t.Errorf("%s: %v, status %d", zone, err, a.Status)
					case a.Status == http.StatusOK:
						passed.Store(fmt.Sprint(i, n), true)
					}
				}
			})
		}
		group.Wait()
		n := 0
		passed.Range(func(any, any) bool { n++; return true })
		if n > limit || n < limit && zone != "lent" { // an instance may hold what another one needs
			t.Errorf("%s: %d passed, want %d", zone, n, limit)
		}
	}
	for _, s := range fleet {
		s.Sound(t)
	}
}

// stores are lines for memory and for Redis, by name.
func stores(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{"memory": harness.Memory, "redis": harness.SharedStore(t)}
}

// TestReloads: a reload keeps the counts, even if it fails. A changed limit holds at once, also for clients that have
// used up the one before.
func TestReloads(t *testing.T) {
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			config := func(limit string, more ...string) string {
				return harness.Caddyfile("", harness.Limited("zone", "rate "+limit+"/1h\n"+strings.Join(more, "\n"), store, "respond ok"))
			}
			s := harness.One(t, config("4"))
			client := harness.NewClient(t, "")
			left := func(when string, want int64) {
				t.Helper()
				if got := s.Left("zone"); got != want {
					t.Errorf("%s: %d left, want %d", when, got, want)
				}
			}
			s.Admitted(client, 2, "/zone")
			if err := s.Load(config("9", "match header_regexp X-A (")); err == nil || !strings.Contains(err.Error(), "error parsing regexp") {
				t.Errorf("a zone that is wrong: %v", err)
			}
			if err := s.Load(config("9") + ":82 {\nbind unix//nowhere/socket\n}"); err == nil {
				t.Error("a socket that cannot be opened is none to Caddy")
			}
			left("after loads that failed", 2)
			s.MustLoad(config("5") + "\n# changed\n")
			left("after a raise", 3)
			if n := s.Admitted(client, 9, "/zone"); n != 3 {
				t.Errorf("%d passed after a raise, want 3", n)
			}
			s.MustLoad(config("3"))
			if a := s.Get(client, "/zone"); a.Status != http.StatusTooManyRequests || !strings.Contains(a.Header.Get("RateLimit-Policy"), "q=3;") {
				t.Errorf("status %d, %v, with a limit below what is used", a.Status, a.Header)
			}
			s.MustLoad(harness.Caddyfile("", "rate_limit {\nzone zone {\nrate 5/1h\n}\n"+store+"}\nrespond ok"))
			path := "/config/apps/http/servers/srv0/routes/0/handle/0/rate_limits/zone/max_events"
			if err := s.Configure("PATCH", path, "application/json", "6"); err != nil {
				t.Fatal(err)
			}
			if a := s.Get(client, "/zone"); a.Status != http.StatusOK || !strings.Contains(a.Header.Get("RateLimit-Policy"), "q=6;") {
				t.Errorf("status %d, %v, after a patch", a.Status, a.Header)
			}
		})
	}
}

// TestOperators: an operator looks at two instances that share a Redis, finds out why a client is refused, and changes what it
// may do. Each command says its main fact, and its changes hold at the other instance.
func TestOperators(t *testing.T) {
	site := func(rate string) string {
		return "rate_limit {\nzone clients {\nkey {header.User}\nrate " + rate + "\noverrides\nban 1h after 9 refusals in 1m\n}\n" + harness.SharedStore(t) + "\n}\nrespond ok"
	}
	all := harness.Three(t, harness.Caddyfile("", site("3/1h")))
	s, other, client := all[0], all[1], harness.NewClient(t, "")
	admitted := func(user string, n, want int) {
		t.Helper()
		if got := other.Admitted(client, n, "/", "User", user); got != want {
			t.Errorf("%d of %d requests of %s are admitted, want %d", got, n, user, want)
		}
	}
	if got := s.Admitted(client, 5, "/", "User", "ann"); got != 3 {
		t.Fatalf("%d of 5 admitted, want 3", got)
	}
	for _, c := range []struct{ line, want string }{
		{"zones", "  3        2"},
		{"top --refused", "ann"},
		{"get ann", "Zone clients is refusing this key: 3 of 3 used. Next request allowed at "},
		{"explain -H User:ann " + s.URL("/"), "It is refused with status 429"},
		{"stores", "yes      closed"},
		{"reset clients ann", "Reset ann in zone clients."},
		{"set clients ann 5/1h", "override  sliding_window_log 5/1h until it is cleared"},
		{"ban clients bob --for 1h --note scrapes", "an operator has banned it until "},
	} {
		output, err := s.RateLimit(strings.Fields(c.line)...)
		if err != nil || !strings.Contains(output, c.want) {
			t.Errorf("%s: %v, want %q in\n%s", c.line, err, c.want, output)
		}
	}
	admitted("ann", 6, 5)
	admitted("bob", 1, 0)
	if code, output, _ := s.Doctor(); code == 1 || !strings.Contains(output, "store redis ") {
		t.Errorf("doctor: exit code %d\n%s", code, output)
	}
}
