//go:build deep

package cli_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

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

// TestDoctorFindsWhatIsWrong: what needs a second process or another clock is found by the name of its check and of the
// zone or store, and nothing else is blamed. TestAdviceIsGood has what is wrong with one instance.
func TestDoctorFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	main := redistest.Start(t, redistest.WithArgs("--maxmemory", "1gb"))
	lying, dead := faultproxy.Start(t, main.Addr()), "127.0.0.1:"+strconv.Itoa(redistest.FreePort(t))
	lying.Rewrite(func(command string, reply []byte) []byte {
		if command != "time" {
			return reply
		}
		now := strconv.FormatInt(time.Now().Add(-time.Hour).Unix(), 10)
		return fmt.Appendf(nil, "*2\r\n$%d\r\n%s\r\n$1\r\n0\r\n", len(now), now)
	})
	s := harness.StartCaddy(t, harness.Caddyfile("", zoneIn("clock", redisWith(lying.Addr()))+zoneIn("shared", redisWith(main.Addr()))+zoneIn("dead", redisWith(dead))))
	other := harness.StartCaddy(t, harness.Caddyfile("servers {\ntrusted_proxies static 0.0.0.0/0\n}", strings.Replace(zoneIn("shared", redisWith(main.Addr())), "1000000", "2000000", 1)))
	patient.Until(t, "two instances to tell their zones", func() bool {
		texts, told := main.Admin().Keys(context.Background(), "rl:report:*").Val(), 0
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
	for name, c := range map[string]struct {
		all  []harness.Finding
		want harness.Finding
	}{
		"clock":                        {findings, harness.Finding{Check: "clock", Of: "store", Names: []string{"redis " + lying.Addr()}}},
		"dead":                         {findings, harness.Finding{Check: "answer", Of: "store", Names: []string{"redis " + dead}}},
		"limits nothing without store": {findings, harness.Finding{Check: "on_store_error", Of: "zone", Names: []string{"dead"}}},
		"everybody trusted":            {ofOther, harness.Finding{Check: "client_address", Of: "server", Names: []string{"srv0"}}},
	} {
		if f := find(c.all, c.want); f == nil || f.Level == "ok" || f.Fix == "" || f.Found == "" {
			t.Errorf("%s: not found: %+v", name, f)
		}
	}
	for _, f := range findings { // what is well is not blamed
		if f.Level != "ok" && (f.Of == "server" || f.Check == "breaker" || slices.Contains(f.Names, "shared")) {
			t.Errorf("blamed: %+v", f)
		}
	}
	fleet := []string{"caddy unix/" + filepath.Join(s.Dir, "admin"), "caddy unix/" + filepath.Join(other.Dir, "admin")}
	if code, screen, _ := s.Doctor("--address", strings.TrimPrefix(fleet[1], "caddy ")); code != 2 || !strings.Contains(screen, fleet[0]+"\n") || !strings.Contains(screen, fleet[1]+"\n") {
		t.Errorf("exit code %d for a fleet:\n%s", code, screen)
	}
}

// find returns the worst finding of a check of a server, a zone or a store; nil if there is none.
func find(findings []harness.Finding, want harness.Finding) (worst *harness.Finding) {
	for i, f := range findings {
		if f.Check == want.Check && f.Of == want.Of && slices.Equal(f.Names, want.Names) &&
			(worst == nil || worst.Level == "ok" || f.Level == "fail") {
			worst = &findings[i]
		}
	}
	return worst
}
