package feed_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/feed"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// all wants every decision.
func all(string, string, outcome.Outcome) bool { return true }

// request is one of a client, as Caddy prepares it.
func request(path string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://example.com"+path, nil)
	r.RemoteAddr = "203.0.113.7:1"
	r.Header.Set("User-Agent", "curl/8")
	return caddyhttp.PrepareRequest(r, caddy.NewReplacer(), httptest.NewRecorder(), &caddyhttp.Server{})
}

// received takes what waits for a subscriber.
func received(s *feed.Subscriber) (got []adminapi.Decision) {
	for {
		select {
		case d := <-s.Decisions:
			got = append(got, d)
		default:
			return got
		}
	}
}

// TestPublish: a subscriber gets the decisions that it wants, with what the store has said, if it was asked.
func TestPublish(t *testing.T) {
	feed.PublishWithoutDecision(request("/"), "z", "", "k", outcome.Exempt, nil) // there is nobody
	asked := ""
	s, err := feed.Subscribe(1000, func(zone, key string, o outcome.Outcome) bool {
		asked += zone + " " + key + " " + outcome.Names[o] + "\n"
		return zone == "z"
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Unsubscribe()
	check := &store.Check{Key: "k", Cost: 3}
	decision := &algorithms.Decision{Quota: 10, Remaining: 4, At: 1}
	feed.Publish(request("/a?b"), "z", "pro", check, outcome.Limited, decision, nil)
	feed.Publish(request("/a"), "other", "", check, outcome.Limited, decision, nil)
	feed.Publish(request("/a"), "z", "", check, outcome.Limited, &algorithms.Decision{Quota: 10}, nil) // the store has not looked
	feed.Publish(request("/a"), "z", "", check, outcome.Banned, decision, nil)
	feed.PublishWithoutDecision(request("/a"), "z", "", "long"+strings.Repeat("k", topk.MaxKey), outcome.Rejected, errors.New("no key"))
	got := received(s)
	if len(got) != 4 || s.Skipped.Load() != 0 {
		t.Fatalf("%d decisions, and %d skipped", len(got), s.Skipped.Load())
	}
	first := got[0]
	if first.Zone != "z" || first.Plan != "pro" || first.Outcome != "limited" || first.Cost != 3 || first.Key != "k" || first.ClientIP != "203.0.113.7" ||
		first.Method != "POST" || first.Host != "example.com" || first.Path != "/a" || first.UserAgent != "curl/8" || first.Reason != "" || first.Decision == nil || first.Decision.Used != 6 {
		t.Errorf("%+v", first)
	}
	if got[1].Decision != nil || got[2].Decision != nil || got[3].Decision != nil || got[3].Reason != "no key" || len(got[3].Key) > topk.MaxKey {
		t.Errorf("%+v", got[1:])
	}
	if want := "z k limited\nother k limited\nz k limited\nz k banned\n"; !strings.HasPrefix(asked, want) {
		t.Errorf("asked for %s", asked)
	}
	s.Unsubscribe()
	s.Unsubscribe() // does nothing
	feed.PublishWithoutDecision(request("/"), "z", "", "k", outcome.Exempt, nil)
	if got := received(s); got != nil {
		t.Errorf("after the end: %+v", got)
	}
}

// TestRate: a subscriber gets as many decisions in a second as it has asked for, and the others are counted.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := feed.Subscribe(10, all)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Unsubscribe()
		publish := func(n int) {
			for range n {
				feed.PublishWithoutDecision(request("/"), "z", "", "k", outcome.Exempt, nil)
			}
		}
		publish(15)
		if n := len(received(s)); n != 10 || s.Skipped.Load() != 5 {
			t.Errorf("%d of 15, and %d skipped", n, s.Skipped.Load())
		}
		time.Sleep(300 * time.Millisecond)
		publish(5)
		if n := len(received(s)); n != 3 || s.Skipped.Load() != 7 {
			t.Errorf("%d of 5 after 300 ms, and %d skipped", n, s.Skipped.Load())
		}
	})
	if _, err := feed.Subscribe(-1, all); err == nil {
		t.Error("a rate of -1 is taken")
	}
}

// TestFullBuffer: a subscriber that does not read keeps no request waiting.
func TestFullBuffer(t *testing.T) {
	s, err := feed.Subscribe(100_000, all)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Unsubscribe()
	n := cap(s.Decisions)
	for range n + 7 {
		feed.PublishWithoutDecision(request("/"), "z", "", "k", outcome.Exempt, nil)
	}
	if got := len(received(s)); got != n || s.Skipped.Load() != 7 {
		t.Errorf("%d of %d, and %d skipped", got, n+7, s.Skipped.Load())
	}
}

// TestOnDemand: a subscriber gets what it asks for, and nothing before.
func TestOnDemand(t *testing.T) {
	s, err := feed.SubscribeOnDemand(all)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Unsubscribe()
	for i, want := range []int{0, 2, 3, 0} {
		s.Ask([]int{0, 2, 3, -1}[i])
		for range 5 {
			feed.PublishWithoutDecision(request("/"), "z", "", "k", outcome.Exempt, nil)
		}
		if got := len(received(s)); got != want {
			t.Errorf("round %d: %d decisions, want %d", i, got, want)
		}
	}
}
