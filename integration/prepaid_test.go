package integration_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// prepaid is three instances that hold units of a key which comes often, and an upstream that counts what passes.
type prepaid struct {
	*testing.T
	fleet    []*harness.Server
	upstream *harness.Backend
	client   *http.Client
	store    string
	zone     string
	sent     int
}

// holding are the options of the zones: what is held comes back 100 ms later. Windows do not end in a test.
const holding = "key {header.User}\nlend 100ms\noverrides\n"

var prepaidZones = map[string]string{
	"spares":   "rate 100000/1000h",
	"log":      "algorithm sliding_window_log 60/1000h",
	"bucket":   "algorithm token_bucket 60/1000h",
	"fixed":    "algorithm fixed_window 60/1000h",
	"costs":    "algorithm fixed_window 200/1000h\ncost {header.Cost}",
	"override": "algorithm fixed_window 100/1000h",
	"banned":   "algorithm fixed_window 1000/1000h",
	"reset":    "algorithm fixed_window 50/1000h",
	"late":     "algorithm fixed_window 300/1000h\ncharge {\nheader X-Tokens-Used\n}",
	"refunds":  "algorithm fixed_window 40/1000h\ncharge {\nstatus 2xx\n}",
}

// TestPrepaid: three instances hold units of a key, and the upstream gets exactly what the limit allows, whatever else
// happens to the key.
func TestPrepaid(t *testing.T) {
	p := &prepaid{T: t, upstream: harness.StartBackend(t, harness.AnswerAsAsked), client: harness.NewClient(t, ""), store: harness.SharedStore(t)}
	p.fleet = harness.Three(t, p.config("40"))
	tests := map[string]func(p *prepaid){
		"spares": (*prepaid).spares, "log": exactly(60), "bucket": exactly(60), "fixed": exactly(60), "both": exactly(30),
		"costs": (*prepaid).costs, "override": (*prepaid).override, "banned": (*prepaid).banned, "reset": (*prepaid).reset,
		"late": (*prepaid).late, "refunds": (*prepaid).refunds,
	}
	t.Run("zones", func(t *testing.T) {
		for zone, test := range tests {
			t.Run(zone, func(t *testing.T) {
				t.Parallel()
				c := *p
				c.T, c.zone = t, zone
				test(&c)
			})
		}
	})
	p.zone = "changed"
	t.Run("a limit that a config changes", p.changed)
}

func (p *prepaid) config(changed string) string {
	site := ""
	route := func(path string, zones ...string) {
		site += "handle /" + path + " {\nrate_limit {\n" + strings.Join(zones, "") + p.store + "\n}\nreverse_proxy " + p.upstream.Address + "\n}\n"
	}
	zone := func(name, options string) string { return "zone " + name + " {\n" + holding + options + "\n}\n" }
	for name, options := range prepaidZones {
		route(name, zone(name, options))
	}
	route("changed", zone("changed", "algorithm fixed_window "+changed+"/1000h"))
	route("both", zone("one", "algorithm token_bucket 90/1000h"), zone("both", "algorithm fixed_window 30/1000h"))
	return harness.Caddyfile("", site)
}

// send makes a request at the next instance, and returns its status.
func (p *prepaid) send(header ...string) int {
	p.Helper()
	p.sent++
	return p.fleet[p.sent%len(p.fleet)].Get(p.client, "/"+p.zone, append([]string{"User", "u", "X-Request-Id", p.zone}, header...)...).Status
}

// came returns how many requests have come to the upstream.
func (p *prepaid) came() (n int64) {
	for _, zone := range p.upstream.Came() {
		if zone == p.zone {
			n++
		}
	}
	return n
}

// until sends until so many requests have come, and shows that no more come.
func (p *prepaid) until(want int64, header ...string) {
	p.Helper()
	patient.Until(p.T, fmt.Sprint(want, " requests at the upstream"), func() bool { p.send(header...); return p.came() >= want })
	for range 30 {
		p.send(header...)
	}
	if n := p.came(); n != want {
		p.Errorf("%d requests came, want %d", n, want)
	}
}

// rest waits until nothing is held.
func (p *prepaid) rest(used int64) {
	p.Helper()
	p.fleet[0].AwaitUsed("what was used, without what is held", p.zone, "u", used)
}

func exactly(limit int64) func(p *prepaid) {
	return func(p *prepaid) { p.until(limit) }
}

// spares: some requests need no call. What is looked at is the limit, and charges nothing.
func (p *prepaid) spares() {
	patient.Until(p.T, "a request that needs no call", func() bool {
		if status := p.send(); status != http.StatusOK {
			p.Fatalf("status %d", status)
		}
		_, samples := p.fleet[0].Scrape()
		for name := range samples {
			if strings.HasPrefix(name, "store_lent_decisions_total") {
				return true
			}
		}
		return false
	})
	if k := p.fleet[1].Spent(p.zone, "u"); k.Quota != 100_000 || k.Used < p.came() {
		p.Errorf("%+v with %d requests", k, p.came())
	}
	p.rest(p.came())
}

// costs: the costs of what passes are the limit, whatever each is.
func (p *prepaid) costs() {
	sum := int64(0)
	cost := func(n int64) bool {
		passed := p.send("Cost", fmt.Sprint(n)) == http.StatusOK
		if passed {
			sum += n
		}
		return passed
	}
	for i := int64(0); i < 40; i++ {
		cost(1 + i%3*3)
	}
	patient.Until(p.T, "all of the limit to be used", func() bool { cost(1); return sum >= 200 })
	if cost(1); sum != 200 {
		p.Errorf("requests of a cost of %d passed, want 200", sum)
	}
}

func (p *prepaid) override() {
	for range 20 {
		p.send()
	}
	p.fleet[0].Must("PUT", "/rate_limit/zones/override/key/override?key=u", `{"limit": "30/1000h"}`)
	p.rest(20)
	p.until(30)
}

func (p *prepaid) banned() {
	for range 20 {
		p.send()
	}
	p.fleet[0].Must("PUT", "/rate_limit/zones/banned/key/ban?key=u", `{"for": "1h"}`)
	patient.Until(p.T, "three instances to refuse", func() bool {
		passed := false
		for range p.fleet {
			passed = p.send() == http.StatusOK || passed
		}
		return !passed
	})
	p.until(p.came())
}

func (p *prepaid) reset() {
	p.until(50)
	p.fleet[0].Must("DELETE", "/rate_limit/zones/reset/key?key=u", "")
	p.until(100)
}

// late: a request costs 1 before its response, and 5 in the end.
func (p *prepaid) late() {
	for range 30 {
		p.send("X-Use", "5")
	}
	p.rest(150)
}

// refunds: a response that does not count gives its unit back.
func (p *prepaid) refunds() {
	for range 90 {
		p.send("X-Status", "404")
	}
	p.rest(0)
	for counted := 0; counted < 40; {
		if p.send() == http.StatusOK {
			counted++
		}
	}
	p.until(p.came())
	p.rest(40)
}

func (p *prepaid) changed(t *testing.T) {
	p.T = t
	p.until(40)
	for _, c := range []struct {
		limit string
		want  int64
	}{{"70", 70}, {"20", 70}, {"80", 80}} {
		for _, s := range p.fleet {
			s.MustLoad(p.config(c.limit))
		}
		p.until(c.want)
	}
}
