package cli_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// TestCommandGetPlans: `get` shows a key under all plans of a zone, also if requests without a plan
// are rejected.
func TestCommandGetPlans(t *testing.T) {
	t.Parallel()
	s := harness.StartCaddy(t, harness.Caddyfile("", `
		rate_limit {
			zone api {
				key {header.X-Api-Key}
				plan {header.Plan} {
					free    2/1h
					pro     5/1h
					staff   unlimited
					default reject
				}
			}
			zone some {
				match path /some
				key {header.X-Api-Key}
				events 3
				window 1h
				plan {header.Plan} {
					pro 9/1h
				}
			}
		}
		respond ok`))
	if got := s.Admitted(harness.NewClient(t, ""), 3, "/", "X-Api-Key", "k1", "Plan", "free"); got != 2 {
		t.Fatalf("%d of 3 admitted, want 2", got)
	}
	for _, c := range []struct {
		line string
		want []string
	}{
		{"get api k1", []string{
			"PLAN   STATE      USED    LEFT  MORE IN\n", "free   limited    2 of 2  0     ", "pro    allowed    2 of 5  3  ", "staff  unlimited  -       -     -\n",
			"The plan of a request is {header.Plan}; requests with none of these plans get status 403.\n",
			"Zone api is refusing this key under plan free: 2 of 2 used. Next request allowed at ", " reset --address unix/ADMIN api k1\n",
		}},
		{"get k1", []string{
			"ZONE  PLAN   STATE      USED    LEFT  MORE IN", "api   free   limited    2 of 2", "api   pro    allowed    2 of 5",
			"Not counted lately by some.", "Zone api is refusing this key under plan free",
		}},
		{"get api k1 --plan pro", []string{"plan       pro\n", "used       2 of 5\n", "Zone api allows this key."}},
		{"get api k1 --json", []string{`"plan_from": "{header.Plan}"`, `"no_plan_status": 403`, `"plan": "staff"`, `"unlimited": true`}},
	} {
		output, err := s.Shell(`"$CADDY" rate-limit ` + c.line + ` --address unix/"$ADMIN"`)
		for _, want := range c.want {
			if want = strings.ReplaceAll(want, "ADMIN", s.Dir+"/admin"); err != nil || !strings.Contains(output, want) {
				t.Errorf("%s: %v, want %q in\n%s", c.line, err, want, output)
			}
		}
	}
	watched := make(chan string, 1)
	go func() {
		output, err := s.RateLimit("watch", "api", "-n", "1", "--json")
		if err != nil {
			t.Error(err)
		}
		watched <- output
	}()
	seen := ""
	patient.Until(t, "watch to end", func() bool {
		s.Get(harness.NewClient(t, ""), "/", "X-Api-Key", "k2", "Plan", "staff")
		select {
		case seen = <-watched:
			return true
		default:
			return false
		}
	})
	if !strings.Contains(seen, `"plan":"staff","outcome":"exempt"`) {
		t.Errorf("watch shows %s", seen)
	}
	if output, err := s.RateLimit("get", "api", "k1", "--plan", "none"); err == nil || !strings.Contains(output, "its plans are free, pro, staff") {
		t.Errorf("%v\n%s", err, output)
	}
}

// TestCommandGetSlots: the slots of a key come back when a request ends, and `get` says so. A reset
// warns that it forgets running requests.
func TestCommandGetSlots(t *testing.T) {
	t.Parallel()
	harness.EachStore(t, func(t *testing.T, store string) {
		upstream := harness.StartBackend(t, harness.Holding)
		s := harness.StartCaddy(t, harness.Caddyfile("", `
			rate_limit {
				zone slots {
					key {header.User}
					algorithm concurrency
					events 2
					lease 10m
				}
				`+store+`
			}
			reverse_proxy {$UPSTREAM}`), upstream.Variable())
		client := harness.NewClient(t, "")
		var group sync.WaitGroup
		for range 2 {
			group.Go(func() { _, _ = harness.Send(client, s.URL("/"), "User", "bo", "X-Gate", "end") })
		}
		upstream.AwaitInside(t, 2)
		if a := s.Get(client, "/", "User", "bo"); a.Status != http.StatusTooManyRequests {
			t.Errorf("status %d, want 429", a.Status)
		}
		output, err := s.RateLimit("get", "slots", "bo")
		for _, want := range []string{"used    2 of 2", ": 2 of 2 slots are taken. Next request allowed when one of 2 requests ends.", "forget its running requests"} {
			if err != nil || !strings.Contains(output, want) {
				t.Errorf("%v, want %q in\n%s", err, want, output)
			}
		}
		if output, err := s.RateLimit("reset", "slots", "bo"); err != nil || !strings.Contains(output, "Warning: running requests of this key are no longer counted (2)") {
			t.Errorf("%v\n%s", err, output)
		}
		upstream.Open("end")
		group.Wait()
		if output, err := s.RateLimit("reset", "slots", "bo"); err != nil || output != "Warning: it had used nothing\n" {
			t.Errorf("a reset without running requests: %v\n%s", err, output)
		}
	})
}

// TestCommandGetBlocked: `get` says that an address is blocked only if it is, whatever the key is.
func TestCommandGetBlocked(t *testing.T) {
	t.Parallel()
	s := harness.StartCaddy(t, harness.Caddyfile("servers {\ntrusted_proxies static 127.0.0.0/8\n}", `
		rate_limit {
			zone clients {
				key {client_ip}
				events 3
				window 1h
				block client_ip 198.51.100.0/24
			}
			zone secret {
				key {header.X-Api-Key}
				events 3
				window 1h
				block client_ip 198.51.100.0/24
			}
			zone other {
				key {client_ip}
				events 3
				window 1h
				block path /admin*
			}
		}
		respond ok`))
	for _, c := range []struct {
		key                    string
		clients, secret, other bool // whether they block it
	}{
		{"198.51.100.66", true, true, false},
		{"203.0.113.7", false, false, false},
		{"bla", false, false, false},
	} {
		output, err := s.RateLimit("get", c.key)
		if err != nil {
			t.Errorf("%s: %v\n%s", c.key, err, output)
		}
		for zone, blocks := range map[string]bool{"clients": c.clients, "secret": c.secret, "other": c.other} {
			line := "Zone " + zone + " blocks all requests from " + c.key + " with status 403 (block).\n"
			if strings.Contains(output, line) != blocks {
				t.Errorf("%s, zone %s: want that it blocks: %t\n%s", c.key, zone, blocks, output)
			}
		}
		if says := strings.Count(output, "\nOnly the config can change that."); says != 0 && !c.clients || says != 1 && c.clients {
			t.Errorf("%s: what to do is said %d times\n%s", c.key, says, output)
		}
		if strings.Contains(output, "watch") {
			t.Errorf("%s: a command that shows nothing\n%s", c.key, output)
		}
	}
	var k harness.KeyState
	if s.Ask("/rate_limit/zones/clients/key?key=198.51.100.66", &k); k.Outcome != "rejected" || !k.Refused {
		t.Errorf("%+v", k)
	}
}
