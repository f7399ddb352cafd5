package redisstore_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// sentinelACL and clusterACL read from docs/redis.md which further rights users need.
func sentinelACL(t *testing.T) []string {
	return redistest.Documented(t, "../docs/redis.md", "\nuser finder on >password ")
}

func clusterACL(t *testing.T) []string {
	return redistest.Documented(t, "../docs/redis.md", "`limiter` needs three more rights:\n\n```\n")
}

// TestDocumentedKey: docs/redis.md says under which key a client's counter is.
func TestDocumentedKey(t *testing.T) {
	s := open(t, redisstore.Options{})
	text, err := os.ReadFile("../docs/redis.md")
	must(t, err)
	rule := storetest.Rule(t, "clients", "sliding_window_log", storetest.Limit("sliding_window_log", 100, time.Minute))
	if key := s.Key(rule, "203.0.113.7"); !strings.Contains(string(text), "`"+key+"`") {
		t.Errorf("docs/redis.md does not name %s", key)
	}
	// The handler makes these keys from an IPv6 address, and from a template of two placeholders.
	rule = hourly(t)
	for _, key := range []string{"2001:db8::/64", "11:203.0.113.7 6:/login"} {
		if tag, _, _ := strings.Cut(s.Key(rule, key), "zone:"); !strings.Contains(string(text), "`"+tag+"`") {
			t.Errorf("docs/redis.md does not name %s", tag)
		}
	}
}

// TestLeastRights: the documentation names no right that the scripts do not need.
func TestLeastRights(t *testing.T) {
	script := open(t, redisstore.Options{}).ScriptText()
	for _, word := range leastACL(t) {
		switch command, right := strings.CutPrefix(word, "+"); {
		case !right, command == "evalsha", command == "eval", command == "select", command == "del":
		case !strings.Contains(script, "'"+strings.ToUpper(command)+"'"):
			t.Errorf("%s is not used", command)
		}
	}
}

// TestDocumentedKinds: docs/failure.md says what each kind of error means.
func TestDocumentedKinds(t *testing.T) {
	text, err := os.ReadFile("../docs/failure.md")
	must(t, err)
	for _, kind := range store.Failures() {
		if !strings.Contains(string(text), "| `"+kind+"`") {
			t.Errorf("docs/failure.md does not explain %s", kind)
		}
	}
}

// TestFamilies: which limits share a state, and what its key looks like. The doc comment of the
// package has some of these keys.
func TestFamilies(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	must(t, err)
	documented, err := os.ReadFile("doc.go")
	must(t, err)
	s := open(t, redisstore.Options{})
	for _, c := range []struct {
		algorithm, want string
		limit           algorithms.Limit
	}{
		{"sliding_window_log", "1m", per(9, time.Minute)},
		{"sliding_window_log", "1m", per(5, 60*time.Second)},
		{"sliding_window_log", "1m30s", per(5, 90*time.Second)},
		{"sliding_window_counter", "1d", per(5, 24*time.Hour)},
		{"sliding_window_counter", "1.5ms", per(5, 1500*time.Microsecond)},
		{"fixed_window", "250ms", per(5, 250*time.Millisecond)},
		{"fixed_window", "1h-first_request", algorithms.Limit{Events: 5, Window: time.Hour, Align: algorithms.AlignFirstRequest}},
		{"fixed_window", "day-Europe%2FBerlin", algorithms.Limit{Events: 5, Calendar: algorithms.Day, Location: berlin}},
		{"fixed_window", "month-UTC", algorithms.Limit{Events: 5, Calendar: algorithms.Month}},
		{"token_bucket", "1per12s", algorithms.Limit{Events: 5, Window: time.Minute, Burst: 10}},
		{"token_bucket", "1per12s", per(300, time.Hour)},
		{"token_bucket", "7per1m", per(7, time.Minute)},
		{"token_bucket", "5per1m-interval", algorithms.Limit{Events: 5, Window: time.Minute, Refill: algorithms.RefillInterval}},
		{"token_bucket", "0per1m", per(0, time.Minute)},
		{"leaky_bucket", "1per12s", per(5, time.Minute)},
		{"leaky_bucket", "1per12s-queue", algorithms.Limit{Events: 5, Window: time.Minute, Mode: algorithms.ModeQueue, MaxWait: time.Second}},
	} {
		rule := storetest.Rule(t, "zone", c.algorithm, c.limit)
		want := "rl:{k}:zone:" + c.algorithm + ".4:" + c.want
		if got := s.Key(rule, "k"); got != want {
			t.Errorf("%+v: got %s, want %s", c.limit, got, want)
		}
	}
	if got := s.Key(storetest.Rule(t, "zone", "concurrency", algorithms.Limit{Events: 5, Lease: time.Hour}), "k"); got != "rl:{k}:zone:concurrency.4" {
		t.Errorf("slots are at %s", got)
	}
	words := strings.FieldsFunc(string(documented), func(r rune) bool { return strings.ContainsRune(" \t\n,", r) })
	for _, family := range []string{"1m", "1m30s", "1d", "1h-first_request", "day-Europe%2FBerlin", "month-UTC", "1per12s", "5per1m-interval", "1per12s-queue"} {
		if !slices.Contains(words, family) {
			t.Errorf("doc.go does not name the family %s", family)
		}
	}
}

func per(events int64, window time.Duration) algorithms.Limit {
	return algorithms.Limit{Events: events, Window: window}
}
