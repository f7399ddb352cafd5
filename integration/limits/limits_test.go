//go:build deep

// Package limits_test tests that instances admit exactly what limits say: in each kind of window, with lend, over reloads and
// for several zones at once.
package limits_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

func TestMain(m *testing.M) { harness.Main(m) }

// TestExceededRoutes: the config of the docs sends what a dry run would refuse to another upstream, and tells both in a header. While that
// upstream does not answer, the usual one gets all. No client can send that header, or have it removed.
func TestExceededRoutes(t *testing.T) {
	t.Parallel()
	upstream := func(name string) string {
		return harness.StartBackend(t, func(_ *harness.Backend, w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, name, r.Header["Overlimit"])
		}).Address
	}
	_, text, _ := strings.Cut(harness.ReadPage(t, harness.Root+"/docs/policies.md"), "## Let pass what is above the limit\n")
	usual, config := upstream("usual "), regexp.MustCompile("(?s)```caddyfile\n(.*?)```").FindStringSubmatch(text)[1]
	local := func(cheap string) string {
		config := strings.NewReplacer("localhost:9001", cheap, "100/1m", "3/1h").Replace(config)
		return harness.Localize(config, harness.Memory, usual)
	}
	s := harness.StartCaddy(t, local(upstream("cheap ")))
	client := harness.NewClient(t, "")
	ask := func(want string, header ...string) {
		t.Helper()
		if a := s.Get(client, "/", header...); a.Status != http.StatusOK || a.Body != want || a.Header["Ratelimit"] != nil || a.Header["Ratelimit-Policy"] != nil {
			t.Errorf("with %v: status %d, %s, %v, want %s", header, a.Status, a.Body, a.Header, want)
		}
	}
	forged := [][]string{{"Overlimit", "true"}, {"overlimit", "false"}, {"Connection", "Overlimit"}}
	for _, header := range forged {
		ask("usual [false]", header...)
	}
	for _, header := range forged {
		ask("cheap [true]", header...)
	}
	s.MustLoad(local(fmt.Sprintf("127.0.0.1:%d", redistest.FreePort(t))))
	for range 2 {
		ask("usual [true]")
	}
}

// TestPrepaidInTrouble: what three instances hold passes while Redis is gone, and nothing else does. An instance that
// stops gives back what it holds, one that dies does not, and a Redis that was emptied lets the limit pass once more.
func TestPrepaidInTrouble(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	config := harness.Caddyfile("", harness.Limited("z", "algorithm fixed_window 600/1000h\nlend 10s",
		"store redis {\naddress "+redis.Addr()+"\n"+harness.Timeout()+"\n}\non_store_error deny\n", "respond ok"))
	var fleet []*harness.Server
	for range 3 {
		fleet = append(fleet, harness.StartCaddy(t, config))
	}
	client, passed := harness.NewClient(t, ""), int64(0)
	ask := func(s *harness.Server) (status int) {
		if status = s.Get(client, "/z").Status; status == http.StatusOK {
			passed++
		}
		return status
	}
	used := func() int64 { return fleet[0].Spent("z", "").Used }
	for range 20 {
		for _, s := range fleet {
			if status := ask(s); status != http.StatusOK {
				t.Fatalf("status %d", status)
			}
		}
	}
	held := used() - passed
	if held <= 0 {
		t.Fatalf("nothing is held after %d requests", passed)
	}

	fleet[2].Stop()
	patient.Until(t, "the instance to give back what it held", func() bool { n := used() - passed; return n < held })
	held = used() - passed
	if err := fleet[1].Process.Kill(); err != nil { // what it holds counts, and is lost
		t.Fatal(err)
	}
	if now := used() - passed; now != held {
		t.Errorf("%d are held after an instance was killed, want %d", now, held)
	}

	redis.Kill()
	before := passed
	patient.Until(t, "the other one to have spent what it held", func() bool { return ask(fleet[0]) == http.StatusServiceUnavailable })
	if n := passed - before; n > held {
		t.Errorf("%d passed without Redis, at most %d were held", n, held)
	}

	redis.Restart() // which has nothing of before
	passed = 0
	patient.Until(t, "the limit to be used up", func() bool { return ask(fleet[0]) == http.StatusTooManyRequests && passed >= 600 })
	for range 30 {
		ask(fleet[0])
	}
	if passed != 600 {
		t.Errorf("%d passed after Redis was emptied, want 600", passed)
	}
}
