package keys_test

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// raw sends a request byte for byte, given as lines without their CRLFs, and returns the status.
func raw(s *harness.Server, target, host string, fields ...string) int {
	s.T.Helper()
	conn, err := net.Dial("tcp", s.Address)
	if err != nil {
		s.T.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patient.Patience)); err != nil {
		s.T.Fatal(err)
	}
	lines := append([]string{"GET " + target + " HTTP/1.1", "Host: " + host, "Connection: close"}, fields...)
	if _, err := io.WriteString(conn, strings.Join(lines, "\r\n")+"\r\n\r\n"); err != nil {
		s.T.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		s.T.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		s.T.Fatal(err)
	}
	return response.StatusCode
}

// spelt is one spelling of a request, and the status that it gets once the limit of the plain
// spelling is used up.
type spelt struct {
	target, host string
	fields       []string
	want         int
}

// spellings are keys, how to use up the limit of one client, and other ways to write the same
// request.
var spellings = map[string]struct {
	plain  spelt
	others []spelt
	get    []string // the texts with which the command line finds the state
}{
	`{header.X-Api-Key}`: {
		plain: spelt{fields: []string{"X-Api-Key: s3"}},
		others: []spelt{
			{fields: []string{"X-Api-Key: s3", "X-Api-Key: r1"}, want: 400},
			{fields: []string{"X-Api-Key: r2", "X-Api-Key: s3"}, want: 400},
			{fields: []string{"x-api-key: s3", "X-API-KEY: s3"}, want: 429}, // the same, whichever one the upstream takes
			{fields: []string{"X-Api-Key:", "X-Api-Key: s3"}, want: 400},
			{fields: []string{"X-Api-Key:\t s3 \t"}, want: 429},
			{fields: []string{"x-aPI-kEY:s3"}, want: 429},
			{fields: []string{"X-Api-Key:", "\ts3"}, want: 429},                 // a folded line
			{fields: []string{"X-Api-Key: s3", "X_Api_Key: s4"}, want: 429},     // Caddy drops the one with underscores
			{fields: []string{"X-Api-Key: s3", "Host: b.test"}, want: 400},      // Go refuses it
			{fields: []string{"X-Api-Key: s3", "Connection: close"}, want: 429}, // twice, but not in a key
		},
		get: []string{"s3"},
	},
	`"{query.key} {method}"`: {
		plain: spelt{target: "/?key=s3"},
		others: []spelt{
			{target: "/?key=s3&key=r1", want: 400},
			{target: "/?key=r2&a=b&key=s3", want: 400},
			{target: "/?key=r3&%6bey=s3", want: 400},
			{target: "/?key=r4&a;key=s3", want: 400},
			{target: "/?key=s3&key=%733", want: 429},
			{target: "/?key=%733", want: 429},
			{target: "/?k%65y=s3", want: 429},
		},
		get: []string{"s3 GET"},
	},
	`{cookie.session}`: {
		plain: spelt{fields: []string{"Cookie: session=s3"}},
		others: []spelt{
			{fields: []string{"Cookie: session=r1; session=s3"}, want: 400},
			{fields: []string{"Cookie: session=r2", "Cookie: session=s3"}, want: 400},
			{fields: []string{"Cookie: SESSION=r3; session=s3"}, want: 400},
			{fields: []string{"Cookie: session=s3; session=s3"}, want: 429},
			{fields: []string{"Cookie: session=s3", `Cookie: session="s%33"`}, want: 429},
			{fields: []string{`Cookie: a=b;session="s3"`}, want: 429},
		},
		get: []string{"s3"},
	},
	`"{client_ip} {path}"`: {
		plain: spelt{target: "/login"},
		others: []spelt{
			{target: "/LOGIN", want: 429},
			{target: "/lOgin", want: 429},
			{target: "//login", want: 429},
			{target: "/./login", want: 429},
			{target: "/a/../login", want: 429},
			{target: "/log%69n", want: 429},
			{target: "/login?x", want: 429},
			{target: "http://a.test/LOGIN", want: 429},
			{target: "/a%2f..%2flogin", want: 429},
		},
		get: []string{"127.0.0.1 /login", "127.0.0.1 //LOGIN"},
	},
	`{host}`: {
		plain: spelt{host: "a.test"},
		others: []spelt{
			{host: "A.test", want: 429},
			{host: "a.TEST", want: 429},
			{host: "a.test.", want: 429},
			{host: "a.test:8061", want: 429},
			{target: "http://A.test/", host: "b.test", want: 429},
		},
		get: []string{"a.test", "A.TEST."},
	},
}

// TestSpellingsOfOneClient: once a limit is used up, no spelling of the same request reaches the
// upstream, and operators who type the key find its state.
func TestSpellingsOfOneClient(t *testing.T) {
	t.Parallel()
	keys := slices.Sorted(maps.Keys(spellings))
	harness.AnyStore(t, func(t *testing.T, store string) {
		b := harness.StartBackend(t, func(_ *harness.Backend, w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
		site := ""
		for i, key := range keys {
			site += fmt.Sprintf(`
				@of%[1]d header X-Zone of%[1]d
				handle @of%[1]d {
					rate_limit {
						zone of%[1]d {
							match {
								path /login / /a*
							}
							key %[2]s
							events 2
							window 1h
						}
						%[3]s
					}
					reverse_proxy {$UPSTREAM}
				}`, i, key, store)
		}
		s := harness.StartCaddy(t, harness.Caddyfile("", site), b.Variable())
		for i, key := range keys {
			c, zone, before := spellings[key], fmt.Sprint("of", i), len(b.Came())
			ask := func(q spelt) int {
				t.Helper()
				if q.target == "" {
					q.target = "/"
				}
				if q.host == "" {
					q.host = "a.test"
				}
				return raw(s, q.target, q.host, append([]string{"X-Zone: " + zone}, q.fields...)...)
			}
			for i, want := range []int{200, 200, 429} {
				if got := ask(c.plain); got != want {
					t.Fatalf("key %s, request %d: status %d, want %d", key, i+1, got, want)
				}
			}
			for _, q := range c.others {
				if got := ask(q); got != q.want {
					t.Errorf("key %s, %+v: status %d, want %d", key, q, got, q.want)
				}
			}
			if n := len(b.Came()) - before; n != 2 {
				t.Errorf("key %s: %d requests reached the upstream, want 2", key, n)
			}
			for _, part := range c.get {
				text, err := s.Shell(`"$CADDY" rate-limit get --address unix/"$ADMIN" ` + zone + " " + part)
				if err != nil || !strings.Contains(strings.Join(strings.Fields(text), " "), "used 2 of 2") {
					t.Errorf("key %s: get %s: %v\n%s", key, part, err, text)
				}
			}
		}
		s.Sound(t)
	})
}

// TestRepeatedValuesAreTold: a request that is refused for its second value is counted, logged
// once, and shown in the stream of decisions. In a dry run it passes.
func TestRepeatedValuesAreTold(t *testing.T) {
	t.Parallel()
	harness.AnyStore(t, func(t *testing.T, store string) {
		zone := func(name, more string) string {
			return fmt.Sprintf("zone %s {\nkey {header.X-Api-Key}\nevents 9\nwindow 1h\n%s\n}\n", name, more)
		}
		s := harness.StartCaddy(t, harness.Caddyfile("", `
			handle /dry {
				rate_limit {
					`+zone("tried", "dry_run")+store+`
				}
				respond ok
			}
			handle {
				rate_limit {
					`+zone("strict", "")+store+`
				}
				respond ok
			}
			handle_errors {
				respond "{err.message}" {err.status_code}
			}`))
		both := []string{"X-Api-Key: s3", "X-Api-Key: r1"}
		for range 3 {
			if got := raw(s, "/", "a.test", both...); got != 400 {
				t.Errorf("status %d, want 400", got)
			}
			if got := raw(s, "/dry", "a.test", both...); got != 200 {
				t.Errorf("dry run: status %d, want 200", got)
			}
		}
		lines := 0
		for _, l := range s.LinesOf(harness.OurLogger) {
			if strings.Contains(l.Text, "different values for {http.request.header.X-Api-Key}") {
				lines++
			}
		}
		if lines != 2 { // one for each zone
			t.Errorf("%d lines in the log say why, want 2", lines)
		}
		text, err := s.Shell(`"$CADDY" rate-limit top --address unix/"$ADMIN" --refused strict; "$CADDY" rate-limit zones --address unix/"$ADMIN" strict; ` +
			`"$CADDY" rate-limit get --address unix/"$ADMIN" strict s3`)
		if err != nil || !strings.Contains(text, "s3") || !strings.Contains(strings.Join(strings.Fields(text), " "), "refused 3 (3 rejected)") {
			t.Errorf("the command line does not tell of them: %v\n%s", err, text)
		}
		s.Sound(t)
	})
}
