package integration_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/redistest"
)

// lateSite is a limit of 100 of which each request takes one, unless its response says 50
// or is none that counts.
func lateSite(store string) string {
	return caddyfile("", `
		rate_limit {
			zone late {
				key         {header.X-Client}
				algorithm   fixed_window
				events      100
				window      day
				cost_header X-Tokens-Used
				charge on_response {
					status 200
				}
			}
			`+store+`
		}
		reverse_proxy {$UPSTREAM}`)
}

// late answers when its gate opens, whether or not somebody still listens.
func late(b *backend, w http.ResponseWriter, r *http.Request) {
	if gate := r.Header.Get("X-Gate"); gate != "" {
		<-b.gate(gate)
	}
	if used := r.Header.Get("X-Use"); used != "" {
		w.Header().Set("X-Tokens-Used", used)
	}
	if r.Header.Get("X-Fail") != "" {
		w.WriteHeader(http.StatusTeapot)
	}
	_, _ = io.WriteString(w, "ok")
}

// left is what a client has left; asking takes 1.
func left(t *testing.T, s *server, name string) int64 {
	t.Helper()
	a := s.get(newClient(t, ""), "/", "X-Client", name, "X-Use", "1")
	q, _, err := rateLimit(a.header)
	if err != nil {
		t.Fatal(err)
	}
	return q.remaining
}

// TestLateChargesAfterReload: what is under way when the config is reloaded is settled.
func TestLateChargesAfterReload(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store string) {
		b := startBackend(t, late)
		config := lateSite(store)
		s := startCaddy(t, config, b.variable())
		answers := make(chan int, 2)
		for _, header := range [][]string{{"X-Use", "50"}, {"X-Fail", "1"}} {
			go func() {
				a, _ := send(newClient(t, ""), s.url("/"), append(header, "X-Client", "me", "X-Gate", "reload")...)
				answers <- a.status
			}()
		}
		b.awaitInside(t, 2)
		if got := left(t, s, "me"); got != 97 {
			t.Errorf("while both are under way: %d left, want 97", got)
		}
		// The zone stays, the handler does not.
		other := strings.Replace(config, "rate_limit {", "rate_limit {\nstatus 420\n", 1)
		s.mustLoad(other)
		b.open("reload")
		if first, second := <-answers, <-answers; first+second != http.StatusOK+http.StatusTeapot {
			t.Fatalf("answers %d and %d", first, second)
		}
		asked := int64(1)
		waitFor(t, "the charges to be settled", func() bool {
			asked++
			return left(t, s, "me") == 100-50-asked
		})
	})
}

// TestLateChargesAfterTheClientLeft: a client that hangs up pays, and gets back, all the
// same.
func TestLateChargesAfterTheClientLeft(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store string) {
		b := startBackend(t, late)
		s := startCaddy(t, lateSite(store), b.variable())
		ctx, leave := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url("/"), nil)
			if err != nil {
				done <- err
				return
			}
			r.Header.Set("X-Client", "me")
			r.Header.Set("X-Gate", "left")
			response, err := newClient(t, "").Do(r)
			if err == nil {
				response.Body.Close()
			}
			done <- err
		}()
		b.awaitInside(t, 1)
		leave()
		if err := <-done; err == nil {
			t.Fatal("the client did not leave")
		}
		// Caddy's answer to nobody is 502 or 499, which does not count.
		asked := int64(0)
		waitFor(t, "the charge to be given back", func() bool {
			asked++
			return left(t, s, "me") == 100-asked
		})
		b.open("left")
	})
}

// TestCommandsOfPolicies: one EVALSHA for a decision with three zones and plans, and one
// more where something was given back.
func TestCommandsOfPolicies(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := startBackend(t, late)
	s := startCaddy(t, caddyfile("", `
		rate_limit {
			zone plans {
				key  {header.X-Client}
				plan {header.X-Plan} {
					free    1000/1h
					pro     token_bucket 1000/1h burst 2000
					default free
				}
			}
			zone quota {
				key    {header.X-Client}
				events {header.X-Quota} 1000
				window 1h
			}
			zone failures {
				key    {header.X-Client}
				events 1000
				window 1h
				charge on_response {
					status 418
				}
			}
			`+redis(server.Addr())+`
		}
		reverse_proxy {$UPSTREAM}`), b.variable())
	client := newClient(t, "")
	ask := func(n int, header ...string) {
		for i := range n {
			plan := []string{"free", "pro", "none"}[i%3]
			all := append([]string{"X-Client", "me", "X-Plan", plan, "X-Quota", fmt.Sprint(1000 + i)}, header...)
			if a := s.get(client, "/", all...); a.status >= 500 || a.status == http.StatusTooManyRequests {
				t.Fatalf("status %d", a.status)
			}
		}
	}
	ask(1, "X-Fail", "1") // loads the script
	before := scriptCalls(t, server)
	ask(50, "X-Fail", "1") // all of these count
	if got := scriptCalls(t, server) - before; got != 50 {
		t.Errorf("%d EVALSHA for 50 requests with three zones", got)
	}
	before = scriptCalls(t, server)
	ask(50) // none of these counts
	waitFor(t, "what is given back", func() bool { return scriptCalls(t, server)-before > 50 })
	if got := scriptCalls(t, server) - before; got > 100 {
		t.Errorf("%d EVALSHA for 50 requests, each of which gives back", got)
	}
}
