package integration_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// TestOperators: an operator looks at two instances that share a Redis, finds out why a client is refused, changes what it
// may do, and plans another limit. Each command says its main fact, and its changes hold at the other instance.
func TestOperators(t *testing.T) {
	site := func(rate string) string {
		return "rate_limit {\nzone clients {\nkey {header.User}\nrate " + rate + "\noverrides\nban 1h after 9 refusals in 1m\n}\n" + harness.SharedStore(t) + "\n}\nrespond ok"
	}
	all := harness.Three(t, harness.Caddyfile("", site("3/1h")))
	s, other, client := all[0], all[1], harness.NewClient(t, "")
	admitted := func(user string, n, want int) {
		t.Helper()
		if got := other.Admitted(client, n, "/", "User", user); got != want {
			t.Errorf("%d of %d requests of %s are admitted, want %d", got, n, user, want)
		}
	}
	if got := s.Admitted(client, 5, "/", "User", "ann"); got != 3 {
		t.Fatalf("%d of 5 admitted, want 3", got)
	}
	for _, c := range []struct{ line, want string }{
		{"zones", "  3        2"},
		{"top --refused", "ann"},
		{"get ann", "Zone clients is refusing this key: 3 of 3 used. Next request allowed at "},
		{"explain -H User:ann " + s.URL("/"), "It is refused with status 429"},
		{"stores", "yes      closed"},
		{"reset clients ann", "Reset ann in zone clients."},
		{"set clients ann 5/1h", "override  sliding_window_log 5/1h until it is cleared"},
		{"ban clients bob --for 1h --note scrapes", "an operator has banned it until "},
	} {
		output, err := s.RateLimit(strings.Fields(c.line)...)
		if err != nil || !strings.Contains(output, c.want) {
			t.Errorf("%s: %v, want %q in\n%s", c.line, err, c.want, output)
		}
	}
	admitted("ann", 6, 5)
	admitted("bob", 1, 0)
	if code, output, _ := s.Doctor(); code == 1 || !strings.Contains(output, "store redis ") {
		t.Errorf("doctor: exit code %d\n%s", code, output)
	}

	var log strings.Builder
	for i := range 6 {
		fmt.Fprintf(&log, "192.0.2.1 - - [20/Nov/2026:10:00:0%d +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"x\"\n", i)
	}
	for name, text := range map[string]string{
		"plan/Caddyfile":      "http://example.com {\n\trate_limit {\n\t\tzone clients {\n\t\t\tkey {client_ip}\n\t\t\trate 4/1h\n\t\t}\n\t}\n}\n",
		"plan/old":            "http://example.com {\n\trate_limit {\n\t\tzone clients {\n\t\t\tkey {client_ip}\n\t\t\trate 5/1h\n\t\t}\n\t}\n}\n",
		"plan/Caddyfile.test": "case four {\n\tGET / repeat 5 pass 4\n}\n",
		"plan/access.log":     log.String(),
	} {
		file := filepath.Join(s.Dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for line, want := range map[string]string{
		"test":              "1 case, 0 failed",
		"replay access.log": "and 1 of 1 client.",
		"diff --adapter caddyfile old Caddyfile access.log": "the old config refuses 1 and the new one 2",
	} {
		output, err := s.Shell(`cd plan && "$CADDY" rate-limit ` + line + " 2>&1")
		if flat := strings.Join(strings.Fields(output), " "); err != nil || !strings.Contains(flat, want) {
			t.Errorf("%s: %v, want %q in\n%s", line, err, want, output)
		}
	}
}
