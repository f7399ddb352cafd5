package redisstore_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// sentinelACL and clusterACL read from docs/redis.md which further rights users need.
func sentinelACL(t *testing.T) []string {
	return documented(t, "\nuser finder on >password ")
}

func clusterACL(t *testing.T) []string {
	return documented(t, "`limiter` needs three more rights:\n\n```\n")
}

func documented(t *testing.T, after string) []string {
	t.Helper()
	text, err := os.ReadFile("../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rules, ok := strings.Cut(string(text), after)
	if !ok {
		t.Fatalf("docs/redis.md has no line %q", after)
	}
	rules, _, _ = strings.Cut(rules, "\n")
	return strings.Fields(rules)
}

func containsAll(text string, parts ...string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// TestDocumentedKey: docs/redis.md says under which key a client's counter is.
func TestDocumentedKey(t *testing.T) {
	s := open(t, redisstore.Options{})
	text, err := os.ReadFile("../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range store.Failures() {
		if !strings.Contains(string(text), "| `"+kind+"`") {
			t.Errorf("docs/failure.md does not explain %s", kind)
		}
	}
}

// TestNoOtherRights: the scripts need no right that the documentation does not name.
func TestNoOtherRights(t *testing.T) {
	documented := leastACL(t)
	for _, call := range regexp.MustCompile(`call\('([A-Z]+)'`).FindAllStringSubmatch(open(t, redisstore.Options{}).ScriptText(), -1) {
		if !slices.Contains(documented, "+"+strings.ToLower(call[1])) {
			t.Errorf("docs/redis.md does not name +%s", strings.ToLower(call[1]))
		}
	}
}
