package caddyratelimit_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestCompareUses: a zone that servers define differently is the same zone when they load in another order, which
// Caddy chooses at random.
func TestCompareUses(t *testing.T) {
	use := func(port, cost int) string {
		return strings.Replace(oneZone("key {client_ip}\nrate 100/1m\ncost "+strconv.Itoa(cost)), "http://example.com", fmt.Sprint("http://:", port), 1)
	}
	before := use(8001, 1) + use(8002, 2)
	for range 8 {
		if d := compared(t, before, before, nil); len(d.Zones) > 0 {
			t.Fatalf("the same config: got %+v", d)
		}
		d := compared(t, before, use(8001, 1)+use(8002, 3), nil)
		if len(d.Zones) != 1 || len(d.Zones[0].Changes) != 1 || d.Zones[0].Changes[0].Text != "cost now 3, was 2" || d.Zones[0].FromZero {
			t.Fatalf("another cost: got %+v", d.Zones)
		}
	}
}

// TestCompareSecrets: values of matchers are not told, because they may be tokens, but their change is. What a handler
// decides for its zones is told, too.
func TestCompareSecrets(t *testing.T) {
	const base = "key {client_ip}\nrate 100/1m\n"
	for name, c := range map[string]struct{ before, after, want string }{
		"token":      {base + "exempt header X-Token SECRET1", base + "exempt header X-Token SECRET2", "exempt 1 header X-Token 1 now has other values, which are hidden or too long: (hidden)"},
		"expression": {base, base + "match expression {header.X-Token}=='SECRET'", "match now (hidden)"},
		"path":       {base, base + "match path /login", `match now [{"path":["/login"]}]`},
	} {
		d := compared(t, oneZone(c.before), oneZone(c.after), nil)
		text := ""
		if len(d.Zones) == 1 && len(d.Zones[0].Changes) == 1 {
			text = d.Zones[0].Changes[0].Text
		}
		if all, err := json.Marshal(d); err != nil || strings.Contains(string(all), "SECRET") || !strings.Contains(text, c.want) {
			t.Errorf("%s: got %+v, want %s", name, d, c.want)
		}
	}
	store := func(port, more string) string {
		return strings.Replace(oneZone(base), "zone z", "store redis {\naddress localhost:"+port+"\npassword SECRET"+port+"\n}\n"+more+"zone z", 1)
	}
	d := compared(t, store("1", ""), store("2", "on_store_error deny\n"), nil)
	var texts []string
	for _, z := range d.Zones {
		for _, change := range z.Changes {
			texts = append(texts, change.Text)
		}
	}
	const want = "on_store_error now deny, was allow"
	if all, err := json.Marshal(d); err != nil || strings.Contains(string(all), "SECRET") || strings.Join(texts, "; ") != want || len(d.Unjudged) != 2 {
		t.Errorf("store: got %s, %v", all, err)
	}
}

// TestChangesOfAll: a reload is a change if it takes all limits away, brings them back, or changes only the store. Other
// tests may load zones meanwhile.
func TestChangesOfAll(t *testing.T) {
	address := caddytest.FreeAddress(t)
	limited := oneZone("key {client_ip}\nrate 100/1m")
	told := func(config, want string) {
		t.Helper()
		lines := caddytest.RunConfig(t, address, config).FilterMessage("limits changed").All()
		if !slices.ContainsFunc(lines, func(l observer.LoggedEntry) bool {
			what, _ := l.ContextMap()["what"].(string)
			return strings.Contains(what, want)
		}) {
			t.Errorf("want %q, logged %+v", want, lines)
		}
	}
	caddytest.RunConfig(t, address, limited)
	told("http://example.com {\nrespond ok\n}\n", "zone z is gone")
	told(limited, "zone z is new: sliding_window_log 100/1m by {client_ip}")
	told(strings.Replace(limited, "zone z", "store redis {\naddress 127.0.0.1:1\n}\nzone z", 1), "zone z: another store, or other options of it, so counts may begin again from zero")
}
