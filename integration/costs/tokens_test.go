//go:build deep

package costs_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

func startModel(t *testing.T) *harness.Model {
	m := new(harness.Model)
	m.Backend = harness.StartBackend(t, m.Answer)
	return m
}

// rush is a key with a small budget in tokenSite.
const rush, smallBudget = "rush", 20 * 500

// tokenSite has a large budget of tokens, and a small one for the key rush. A request books 500.
func tokenSite(store string) string {
	zone := func(name, match string, events int) string {
		return `
			zone ` + name + ` {
				match         ` + match + `
				key           {header.X-Api-Key}
				algorithm     fixed_window
				events        ` + strconv.Itoa(events) + `
				window        year
				cost          500
				cost_response json usage.prompt_tokens usage.completion_tokens
			}`
	}
	return harness.Caddyfile("", `
		log
		rate_limit {`+zone("tokens", "not header X-Api-Key "+rush, 100_000_000)+zone("small", "header X-Api-Key "+rush, smallBudget)+`
			`+store+`
		}
		reverse_proxy /closed 127.0.0.1:1
		reverse_proxy {$UPSTREAM} {
			flush_interval -1
		}`)
}

// TestTokensAreExact: 100 clients that stream at once are charged what the model says, to the token.
// However many come at once, no more begin than the bookings allow. What they owe then shows.
func TestTokensAreExact(t *testing.T) {
	t.Parallel()
	harness.EachStore(t, func(t *testing.T, store string) {
		const clients = 100
		m := startModel(t)
		s := harness.StartCaddy(t, tokenSite(store), m.Variable())
		client := harness.NewClient(t, "")
		var all sync.WaitGroup
		for range clients {
			all.Go(func() {
				for range 2 {
					q := harness.Question{Stream: rand.IntN(3) > 0, Options: harness.WithUsage, Prompt: rand.Int64N(2000), Say: 1 + rand.Int64N(2000)}
					if status := s.Answered(client, "crowd", q); status != http.StatusOK {
						t.Errorf("status %d", status)
					}
				}
			})
		}
		all.Wait()
		s.AwaitUsed("what the model has said", "tokens", "crowd", m.Used.Load())

		// Of 100 that come at once, 20 begin. Each of them costs more than it has booked.
		var passed, refused atomic.Int64
		for range clients {
			all.Go(func() {
				switch status := s.Answered(client, rush, harness.Question{Stream: true, Options: harness.WithUsage, Prompt: 600, Say: 100, Gate: "rush"}); status {
				case http.StatusOK:
					passed.Add(1)
				case http.StatusTooManyRequests:
					refused.Add(1)
				default:
					t.Errorf("status %d", status)
				}
			})
		}
		patient.UntilEqual(t, "refusals", refused.Load, clients-20)
		m.AwaitInside(t, 20)
		m.Open("rush")
		all.Wait()
		if passed.Load() != 20 {
			t.Errorf("%d passed, want 20", passed.Load())
		}
		s.AwaitUsed("what the rush has cost", "small", rush, 20*700)
		if k := s.Spent("small", rush); k.Owed != 20*700-smallBudget {
			t.Errorf("%+v, want a debt of %d", k, 20*700-smallBudget)
		}
		out, err := exec.Command(harness.CommandBinary(t), "rate-limit", "get", "small", rush, "--address", "unix/"+s.Dir+"/admin").CombinedOutput()
		if want := fmt.Sprintf("%d of %d (%d owed)", 20*700, smallBudget, 20*700-smallBudget); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("get does not say %q: %v\n%s", want, err, out)
		}
		patient.Until(t, "the cost in the access log", func() bool {
			return strings.Contains(string(s.Log()), `"rate_limit_costs":[{"zone":"small","result":"read","booked":500,"cost":700}]`)
		})
		if status := s.Answered(client, rush, harness.Question{Say: 1}); status != http.StatusTooManyRequests {
			t.Errorf("a key with a debt: status %d", status)
		}

		// The access log is written before Caddy's own answer is over.
		if a := s.Get(client, "/closed", "X-Api-Key", "unlucky"); a.Status != http.StatusBadGateway {
			t.Errorf("without an upstream: status %d", a.Status)
		}
		s.AwaitUsed("the booking of a request that has failed", "tokens", "unlucky", 500)
		s.AwaitLog(`"rate_limit_costs":[{"zone":"tokens","result":"failed","booked":500,"cost":500}]`)
	})
}

// TestTokensAfterACrash: if Caddy dies in the middle of a stream, what was booked stays.
func TestTokensAfterACrash(t *testing.T) {
	t.Parallel()
	m := startModel(t)
	site := tokenSite(harness.Redis(redistest.Start(t).Addr()))
	victim := harness.StartCaddy(t, site, m.Variable())
	client := harness.NewClient(t, "")
	for range 3 {
		response := victim.Question(client, "me", harness.Question{Stream: true, Options: harness.WithUsage, Prompt: 9000, Say: 9000, Gate: "never"})
		defer response.Body.Close()
		if _, err := io.ReadFull(response.Body, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
	}
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	m.AwaitInside(t, 0)
	survivor := harness.StartCaddy(t, site, m.Variable())
	if k := survivor.Spent("tokens", "me"); k.Used != 3*500 {
		t.Errorf("used %d after a crash, want the bookings of three streams, %d", k.Used, 3*500)
	}
	m.Open("never")
}
