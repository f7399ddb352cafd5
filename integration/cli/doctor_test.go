//go:build deep

package cli_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// goodRights are the rights that the documentation advises, with which doctor can tell everything.
var goodRights = []string{"~rl:*", "+@all"}

// route is a route with a handler that has one zone.
func doctorRoute(name, handler string) string {
	return "handle /" + name + "* {\nrate_limit {\n" + handler + "\n}\nrespond ok\n}\n"
}

// zoneIn is a handler with a zone of the same name as its route, in a store.
func zoneIn(name, store string, options ...string) string {
	return doctorRoute(name, store+"\nzone "+name+" {\nevents 1000000\nwindow 1h\n"+strings.Join(options, "\n")+"\n}")
}

func redisWith(address string, options ...string) string {
	return "store redis {\naddress " + address + "\ntimeout 10s\n" + strings.Join(options, "\n") + "\n}"
}

// TestDoctorFindsWhatIsWrong: each of twenty things that can be wrong is found by the name of its
// check and of the zone or store.
func TestDoctorFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	main := redistest.Start(t, redistest.WithPassword("right"), redistest.WithTLS(false), redistest.WithArgs("--maxmemory", "1gb"),
		redistest.WithUser("narrow", "p", "~rl:*", "+@all", "-zadd"))
	small := redistest.Start(t, redistest.WithArgs("--maxmemory-policy", "allkeys-lru"))
	small.Admin().SetRange(t.Context(), "ballast", 20<<20, "x")
	small.Configure("maxmemory", strconv.FormatInt(usedMemory(t, small)*105/100, 10))
	replica := redistest.Start(t)
	if err := replica.Admin().ReplicaOf(t.Context(), "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	dead := "127.0.0.1:" + strconv.Itoa(redistest.FreePort(t))
	slow, lying := faultproxy.Start(t, main.Addr()), faultproxy.Start(t, main.Addr())
	slow.Delay(200 * time.Millisecond)
	lying.Rewrite(func(command string, reply []byte) []byte {
		if command != "time" {
			return reply
		}
		now := strconv.FormatInt(time.Now().Add(-time.Hour).Unix(), 10)
		return fmt.Appendf(nil, "*2\r\n$%d\r\n%s\r\n$1\r\n0\r\n", len(now), now)
	})
	port := func(address string) string { return address[strings.LastIndexByte(address, ':'):] }
	shared := "localhost" + port(main.Addr())

	const login = "password right"
	s := harness.StartCaddy(t, harness.Caddyfile("", strings.Join([]string{
		zoneIn("password", redisWith(main.Addr(), "password wrong")),
		zoneIn("plain", redisWith(main.TLSAddr(), login)),
		zoneIn("ca", redisWith("localhost"+port(main.TLSAddr()), login, "tls")),
		zoneIn("narrow", redisWith("unix/"+main.Socket(), "username narrow", "password p")),
		zoneIn("small", redisWith(small.Addr())),
		zoneIn("replica", redisWith(replica.Addr())),
		zoneIn("slow", strings.Replace(redisWith(slow.Addr(), login), "10s", "500ms", 1)),
		zoneIn("clock", redisWith(lying.Addr(), login)),
		zoneIn("dead", redisWith(dead)),
		zoneIn("shared", redisWith(shared, login)),
		zoneIn("proxied", harness.Memory, "key {client_ip}"),
		zoneIn("constant", harness.Memory, "key client_ip"),
		zoneIn("new", harness.Memory, "key {header.X-Key}"),
		zoneIn("unmet", harness.Memory, "key {client_ip}", "match header X-Never sent"),
		zoneIn("exempt", harness.Memory, "key {client_ip}", "exempt {\nnot header X-Never sent\n}"),
		zoneIn("dry", harness.Memory, "key {client_ip}", "dry_run"),
		zoneIn("keyless", harness.Memory, "key {header.X-Key}"),
		zoneIn("same", harness.Memory, "key {header.X-Key}"),
		zoneIn("rejected", harness.Memory, "key {header.X-Key}", "missing_key reject"),
		zoneIn("untold", harness.Memory, "key {client_ip}", "cost_response json usage.total_tokens"),
		doctorRoute("full", "store memory {\nmax_keys 1024\n}"),
	}, "")))
	other := harness.StartCaddy(t, harness.Caddyfile("servers {\ntrusted_proxies static 0.0.0.0/0\n}",
		strings.Replace(zoneIn("shared", redisWith(shared, login)), "1000000", "2000000", 1)))

	client := harness.NewClient(t, "")
	send := func(n int, path string, header func(i int) []string) {
		t.Helper()
		for i := range n {
			var fields []string
			if header != nil {
				fields = header(i)
			}
			s.Get(client, path, fields...)
		}
	}
	send(1, "/proxied", func(int) []string { return []string{"X-Forwarded-For", "203.0.113.7"} })
	send(950, "/new", func(i int) []string { return []string{"X-Key", strconv.Itoa(i)} })
	send(100, "/exempt", nil)
	send(100, "/rejected", nil)
	send(10, "/keyless", nil)
	send(10, "/untold", nil)
	send(100, "/same", func(int) []string { return []string{"X-Key", "me"} })
	for range 20 { // calls that fail one after the other open the breaker, which is no finding of its own
		send(1, "/dead", nil)
	}
	patient.Until(t, "two instances to tell their zones", func() bool {
		texts, told := main.Admin().Keys(context.Background(), "rl:announced:*").Val(), 0
		for _, key := range texts {
			if strings.Contains(main.Admin().Get(context.Background(), key).Val(), `"shared"`) {
				told++
			}
		}
		return told == 2
	})

	code, output, findings := s.Doctor("--json")
	if code != 2 || findings == nil {
		t.Fatalf("exit code %d, want 2:\n%s", code, output)
	}
	_, _, ofOther := other.Doctor("--json")
	for name, want := range map[string]harness.Finding{
		"wrong password":               {Check: "login", Store: main.Addr()},
		"missing TLS":                  {Check: "tls", Store: main.TLSAddr()},
		"wrong CA":                     {Check: "tls", Store: "localhost" + port(main.TLSAddr())},
		"a user without a right":       {Check: "rights", Store: "unix/" + main.Socket()},
		"eviction policy":              {Check: "eviction", Store: small.Addr()},
		"memory nearly full":           {Check: "memory", Store: small.Addr()},
		"a replica as server":          {Check: "replica", Store: replica.Addr()},
		"clock":                        {Check: "clock", Store: lying.Addr()},
		"slow":                         {Check: "round_trip", Store: slow.Addr()},
		"dead":                         {Check: "answer", Store: dead},
		"limits nothing without store": {Check: "on_store_error", Zone: "dead"},
		"two instances that disagree":  {Check: "agreement", Zone: "shared"},
		"untrusted proxy":              {Check: "proxy", Zone: "proxied"},
		"constant key":                 {Check: "config", Zone: "constant"},
		"keys ever new":                {Check: "keys", Zone: "new"},
		"one key":                      {Check: "keys", Zone: "same"},
		"met by no request":            {Check: "requests", Zone: "unmet"},
		"everything exempt":            {Check: "exempt", Zone: "exempt"},
		"dry run":                      {Check: "rollout", Zone: "dry"},
		"missing key":                  {Check: "missing_key", Zone: "keyless"},
		"all rejected":                 {Check: "rejected", Zone: "rejected"},
		"responses without their cost": {Check: "costs", Zone: "untold"},
		"memory store nearly full":     {Check: "keys", Store: "memory"},
	} {
		if f := find(findings, want); f == nil || f.Level != "warn" && f.Level != "fail" || f.Fix == "" || f.Found == "" {
			t.Errorf("%s: not found: %+v", name, f)
		}
	}
	for name, want := range map[string]harness.Finding{
		"everybody trusted": {Check: "client_address", Server: "srv0"},
		"disagreement":      {Check: "agreement", Zone: "shared"},
	} {
		if f := find(ofOther, want); f == nil || f.Level != "fail" {
			t.Errorf("%s: not found by the other: %+v", name, f)
		}
	}
	if f := find(findings, harness.Finding{Check: "agreement", Zone: "shared"}); f != nil && !(strings.HasPrefix(f.Found, "here it is ") && strings.Contains(f.Found, ") has ")) {
		t.Errorf("the definitions are missing: %s", f.Found)
	}
	if f := find(findings, harness.Finding{Check: "breaker", Store: dead}); f != nil && f.Level != "ok" {
		t.Errorf("what follows from the cause is a finding of its own: %+v", f)
	}
	asked := []string{"proxied", "new", "exempt", "rejected", "keyless", "untold", "same", "dead"}
	// What is well in this set-up is not blamed.
	for _, f := range findings {
		well := f.Check == "requests" && slices.Contains(asked, f.Zone) || f.Zone == "shared" && f.Check != "agreement" && f.Check != "requests" || f.Store == "redis "+shared || f.Server != "" ||
			f.Check == "clock" && !strings.HasSuffix(f.Store, lying.Addr())
		if well && f.Level != "ok" {
			t.Errorf("blamed: %+v", f)
		}
	}
	if _, screen, _ := s.Doctor(); !strings.Contains(screen, "fail     login           cannot decide: WRONGPASS") ||
		!strings.Contains(screen, "zone constant\n  warn     config          key \"client_ip\" is a constant, so all clients share\n") {
		t.Errorf("the screen:\n%s", screen)
	} else {
		fits(t, screen)
	}
	fleet := []string{"caddy unix/" + filepath.Join(s.Dir, "admin"), "caddy unix/" + filepath.Join(other.Dir, "admin")}
	if code, screen, _ := s.Doctor("--address", strings.TrimPrefix(fleet[1], "caddy ")); code != 2 || !strings.Contains(screen, fleet[0]+"\n") || !strings.Contains(screen, fleet[1]+"\n") {
		t.Errorf("exit code %d for a fleet:\n%s", code, screen)
	}
	if t.Failed() {
		t.Log(output)
	}
}

// find returns the worst finding of a check of a server, a zone or a store; nil if there is none.
func find(findings []harness.Finding, want harness.Finding) (worst *harness.Finding) {
	for i, f := range findings {
		if f.Check == want.Check && f.Server == want.Server && f.Zone == want.Zone && (f.Store == want.Store || f.Store == "redis "+want.Store) &&
			(worst == nil || worst.Level == "ok" || f.Level == "fail") {
			worst = &findings[i]
		}
	}
	return worst
}

// fits checks that no line is longer than a terminal is wide.
func fits(t *testing.T, screen string) {
	t.Helper()
	for line := range strings.Lines(screen) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// TestDoctorIsContent: of a good set-up nothing is blamed, with either store, and the exit code is 0.
// It is 3 for a warning if that is wanted, and 1 if there is no Caddy to check.
func TestDoctorIsContent(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, redistest.WithArgs("--maxmemory", "1gb"), redistest.WithUser("limiter", "p", goodRights...))
	s := harness.StartCaddy(t, harness.Caddyfile("servers {\ntrusted_proxies static private_ranges\ntrusted_proxies_strict\n}",
		zoneIn("remote", redisWith(redis.Addr(), "username limiter", "password p"), "key {client_ip}")+
			zoneIn("local", harness.Memory, "key {header.X-Key}")+zoneIn("all", harness.Memory)))
	client := harness.NewClient(t, "")
	s.Get(client, "/remote", "X-Forwarded-For", "203.0.113.7")
	s.Get(client, "/local", "X-Key", "me")
	code, output, findings := s.Doctor("--json", "--strict")
	if code != 0 || len(findings) < 20 {
		t.Errorf("exit code %d\n%s", code, output)
	}
	for _, f := range findings {
		if f.Level != "ok" {
			t.Errorf("%+v", f)
		}
	}
	code, screen, _ := s.Doctor()
	if code != 0 || !strings.HasPrefix(screen, "Nothing is wrong.\n") || !strings.Contains(screen, ", 0 warn, 0 fail\n") {
		t.Errorf("exit code %d\n%s", code, screen)
	}
	fits(t, screen)
	for range 100 {
		if a := s.Get(client, "/local", "X-Key", "me"); a.Status != http.StatusOK {
			t.Fatal(a.Status)
		}
	}
	for want, args := range map[int][]string{0: nil, 3: {"--strict"}, 1: {"--strict", "--address", "unix/" + filepath.Join(s.Dir, "nobody")}} {
		if code, output, _ := s.Doctor(args...); code != want {
			t.Errorf("%s: exit code %d, want %d\n%s", args, code, want, output)
		}
	}
}

// usedMemory returns how many bytes a Redis uses.
func usedMemory(t *testing.T, s *redistest.Server) int64 {
	t.Helper()
	for line := range strings.Lines(s.Admin().Info(t.Context(), "memory").Val()) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "used_memory:"); ok {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("no used_memory")
	return 0
}
