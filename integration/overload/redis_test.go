//go:build deep

package overload_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestBesideRedis: a zone in Redis in front of the adaptive limit, or behind it.
// When Redis goes, requests that wait keep their places, those that leave free them, and no slot is lost.
func TestBesideRedis(t *testing.T) {
	for _, c := range []struct {
		policy string
		behind bool
		status int // of a request while Redis is away
	}{
		{"allow", false, http.StatusOK},
		{"local", false, http.StatusOK},
		{"deny", false, http.StatusServiceUnavailable},
		{"allow", true, http.StatusOK},
		{"local", true, http.StatusOK},
		{"deny", true, http.StatusServiceUnavailable},
	} {
		t.Run(fmt.Sprintf("%s, behind %v", c.policy, c.behind), func(t *testing.T) {
			redis := redistest.Start(t)
			count := fmt.Sprintf("rate_limit {\nstore redis {\n address %s\n timeout 100ms\n}\non_store_error %s\nzone count {\n key {http.request.header.Key}\n rate 1000/1h\n}\n}", redis.Addr(), c.policy)
			before, behind := count, ""
			if c.behind {
				before, behind = "", count
			}
			p := newProxy(t)
			p.load("max 1\nmax_wait 1m", before, behind)
			first := p.send(t.Context(), "a", "/")
			p.arrives("a")
			ctx, leave := context.WithCancel(t.Context())
			p.send(ctx, "b", "/")
			p.waiting(1)
			second := p.send(t.Context(), "c", "/")
			p.waiting(2)
			redis.Kill()
			leave()
			p.waiting(1)
			p.up.of("a") <- http.StatusOK
			p.up.of("c") <- http.StatusOK
			if got := <-first; got.status != http.StatusOK {
				t.Errorf("the request that ran: %+v", got)
			}
			want := http.StatusOK // it was counted before it began to wait, unless the zone is behind
			if c.behind {
				want = c.status
			}
			if got := <-second; got.status != want {
				t.Errorf("the request that waited: %+v, want status %d", got, want)
			}
			for range 5 {
				p.up.of("d") <- http.StatusOK
				if got := <-p.send(t.Context(), "d", "/"); got.status != c.status {
					t.Errorf("without Redis: %+v, want status %d", got, c.status)
				}
			}
			patient.UntilEqual(t, "requests that run in the end", func() int { return state(t).Running }, 0)
			redis.Restart()
			patient.UntilEqual(t, "the status once Redis is back", func() int {
				p.up.of("e") <- http.StatusOK
				return (<-p.send(t.Context(), "e", "/")).status
			}, http.StatusOK)
			if s := state(t); s.Running != 0 || s.Waiting != 0 {
				t.Errorf("%+v in the end", s)
			}
		})
	}
}
