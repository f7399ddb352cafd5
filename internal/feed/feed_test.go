package feed_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/feed"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
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

// TestPublish: a subscriber gets the decisions that it wants, with what the store has said, if it was asked.
func TestPublish(t *testing.T) {
	feed.Publish(request("/"), "z", "", "k", 0, outcome.Exempt, nil, nil) // there is nobody
	asked := ""
	s, err := feed.Subscribe(func(zone, key string, o outcome.Outcome) bool {
		asked += zone + " " + key + " " + outcome.Names[o] + "\n"
		return zone == "z"
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Unsubscribe()
	s.Ask(1000)
	decision := &algorithms.Decision{Quota: 10, Remaining: 4, At: 1}
	feed.Publish(request("/a?b"), "z", "pro", "k", 3, outcome.Limited, decision, nil)
	feed.Publish(request("/a"), "other", "", "k", 3, outcome.Limited, decision, nil)
	feed.Publish(request("/a"), "z", "", "k", 3, outcome.Limited, &algorithms.Decision{Quota: 10}, nil) // the store has not looked
	feed.Publish(request("/a"), "z", "", "k", 3, outcome.Banned, decision, nil)
	feed.Publish(request("/a"), "z", "", "long"+strings.Repeat("k", topk.MaxKey), 0, outcome.Rejected, nil, errors.New("no key"))
	got, skipped := s.Take()
	if len(got) != 4 || skipped != 0 {
		t.Fatalf("%d decisions, and %d skipped", len(got), skipped)
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
	feed.Publish(request("/"), "z", "", "k", 0, outcome.Exempt, nil, nil)
	if got, _ := s.Take(); got != nil {
		t.Errorf("after the end: %+v", got)
	}
}

// TestFullBuffer: a subscriber that does not read keeps no request waiting.
func TestFullBuffer(t *testing.T) {
	s, err := feed.Subscribe(all)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Unsubscribe()
	s.Ask(100_000)
	for range feed.Buffer + 7 {
		feed.Publish(request("/"), "z", "", "k", 0, outcome.Exempt, nil, nil)
	}
	if got, skipped := s.Take(); len(got) != feed.Buffer || skipped != 7 {
		t.Errorf("%d of %d, and %d skipped", len(got), feed.Buffer+7, skipped)
	}
}

// TestOnDemand: a subscriber gets what it asks for, and nothing before. The others are counted.
func TestOnDemand(t *testing.T) {
	s, err := feed.Subscribe(all)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Unsubscribe()
	for i, want := range []int{0, 2, 3, 0} {
		s.Ask([]int{0, 2, 3, -1}[i])
		for range 5 {
			feed.Publish(request("/"), "z", "", "k", 0, outcome.Exempt, nil, nil)
		}
		if got, skipped := s.Take(); len(got) != want || skipped != uint64(5-want) {
			t.Errorf("round %d: %d decisions and %d skipped, want %d", i, len(got), skipped, want)
		}
	}
}
