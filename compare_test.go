package caddyratelimit_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/compare"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// oneZone is a config with a zone z.
func oneZone(options string) string {
	return "http://example.com {\nrate_limit {\nzone z {\n" + options + "\n}\n}\nrespond ok\n}\n"
}

// compared compares two Caddyfiles.
func compared(t *testing.T, before, after string, o *replay.Options) *adminapi.Comparison {
	t.Helper()
	var configs [2][]byte
	for i, text := range []string{before, after} {
		var err error
		if configs[i], _, err = caddytest.Adapt(text); err != nil {
			t.Fatal(err)
		}
	}
	c, err := compare.Configs(configs[0], configs[1], o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestCompare: what differs between two configs is said in words, with what is wrong
// now that was right before.
func TestCompare(t *testing.T) {
	const base = "key {client_ip}\nrate 100/1m"
	plans := func(lines string) string {
		return "key {client_ip}\nplan {host} {\n" + lines + "\nstaff unlimited\npro token_bucket 100/1s burst 300\n}"
	}
	planned := plans("free 60/1m\ntrial 5/1m\ndefault reject")
	for name, c := range map[string]struct {
		before, after string
		want          string // kind, and texts
	}{
		"nothing":      {base, base, ""},
		"lowered":      {base, "key {client_ip}\nrate 60/1m", "changed: max_events now 60, was 100"},
		"window":       {base, "key {client_ip}\nrate 100/1h", "changed: window now 1h, was 1m"},
		"algorithm":    {base, base + "\nalgorithm fixed_window", "changed: algorithm now fixed_window"},
		"key":          {base, "key {header.X-User}\nrate 100/1m", "changed: key now {header.X-User}, was {client_ip}"},
		"a query":      {base + "\nmatch query handler=a", base + "\nmatch query handler=b", "changed: match 1 query now has other values, which are hidden or too long: (hidden)"},
		"ban":          {base + "\nban 1h after 5 refusals in 1m", base + "\nban 1h after 5 refusals in 2m", "changed: ban window now 2m, was 1m"},
		"dry run":      {base, base + "\nenforce 0", "changed: enforce now 0"},
		"no exemption": {base + "\nexempt 192.0.2.1", base, `changed: no exempt any longer, was [{"client_ip":{"ranges":["192.0.2.1"]}}]`},
		"plan":         {planned, plans("free 40/1m\ntrial 5/1m\ndefault reject"), "changed: plan plans free max_events now 40, was 60"},
		"plans":        {planned, plans("free 90/1m\ntrial unlimited\ndefault reject"), "changed: plan plans free max_events now 90, was 60; no plan plans trial max_events any longer, was 5; plan plans trial unlimited now true; no plan plans trial window any longer, was 1m"},
		"new plan":     {planned, plans("free 60/1m\ntrial 5/1m\nbulk 9/1s\ndefault free"), `changed: plan default now free, was reject; plan plans bulk now {"max_events":9,"window":"1s"}`},
		"plan gone":    {planned, plans("free 60/1m\ndefault reject 404"), `changed: plan default now reject 404, was reject; no plan plans trial any longer, was {"max_events":5,"window":"1m"}`},
	} {
		got := ""
		if d := compared(t, oneZone(c.before), oneZone(c.after), nil); len(d.Zones) > 0 {
			z := d.Zones[0]
			got = z.Kind + ": " + strings.Join(z.Changes, "; ")
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	d := compared(t, oneZone(base), oneZone("key {header.X-Forwarded-For}\nrate 100/1m"), nil)
	if len(d.Zones) != 1 || len(d.Zones[0].Warnings) == 0 || !strings.Contains(d.Zones[0].Warnings[0], "any client can") {
		t.Errorf("a key that clients choose: got %+v", d)
	}
	d = compared(t, oneZone(base), strings.Replace(oneZone(base), "zone z", "zone y", 1), nil)
	if len(d.Zones) != 2 || d.Zones[0].Kind != adminapi.ZoneNew || d.Zones[1].Kind != adminapi.ZoneGone {
		t.Errorf("another name: got %+v", d)
	}
	d = compared(t, oneZone(base), strings.Replace(oneZone(base), "zone z", "store redis {\naddress localhost:1\n}\nzone z", 1), nil)
	if want := []string{"server srv0 routes 1 handle 1 (subroute) routes 1 handle 1 (rate_limit) store"}; !slices.Equal(d.Unjudged, want) {
		t.Errorf("another store: got %q", d.Unjudged)
	}
}

// TestElsewhere: what no zone shows and decides about limits is named: where a zone is, and how handlers answer if a limit
// counts answers, or error routes have one. What decides about no limit is not named.
func TestElsewhere(t *testing.T) {
	at := func(path, zone, rest string) string {
		return "handle " + path + " {\nrate_limit {\nzone " + zone + " {\nkey {client_ip}\nrate 5/1m\n" + rest + "\n}\n}\n}\n"
	}
	site := func(text string) string { return "http://example.com {\n" + text + "\n}\n" }
	onErrors := "handle_errors {\nrate_limit {\nzone e {\nrate 5/1m\n}\n}\n}\n"
	stored := func(path, store string) string {
		return strings.Replace(at(path, "x", ""), "zone", "store "+store+"\nzone", 1)
	}
	const redis = "redis {\naddress localhost:1\n}"
	for name, c := range map[string]struct {
		before, after string
		want          int
	}{
		"zones change places": {at("/a", "x", "") + at("/b", "y", ""), at("/a", "y", "") + at("/b", "x", ""), 4},
		"uses change places":  {at("/a", "x", "cost 1") + at("/b", "x", "cost 5"), at("/a", "x", "cost 5") + at("/b", "x", "cost 1"), 2},
		"stores too":          {stored("/a", redis) + stored("/b", "memory"), stored("/a", "memory") + stored("/b", redis), 4},
		"a limit changes":     {at("/a", "x", "cost 1"), at("/a", "x", "cost 5"), 0},
		"another name":        {at("/a", "x", ""), at("/a", "y", ""), 0},
		"an answer":           {at("/*", "x", "") + "respond 401", at("/*", "x", "") + "respond 200", 0},
		"an answer counts":    {at("/a", "x", "charge {\nstatus 401\n}") + "respond 401", at("/a", "x", "charge {\nstatus 401\n}") + "respond 200", 1},
		"an upstream":         {onErrors + "reverse_proxy localhost:1", onErrors + "reverse_proxy localhost:2", 1},
		"an error":            {onErrors + "file_server", onErrors + "file_server {\nhide x\n}", 1},
	} {
		if d := compared(t, site(c.before), site(c.after), nil); len(d.Unjudged) != c.want {
			t.Errorf("%s: got %q, want %d parts", name, d.Unjudged, c.want)
		}
	}
}

// TestCompareLog: with a log it is said which clients are refused more often, and less often.
func TestCompareLog(t *testing.T) {
	var log strings.Builder
	for client, n := range map[string]int{"192.0.2.1": 3, "192.0.2.2": 8, "198.51.100.3": 12} {
		for i := range n {
			fmt.Fprintf(&log, "%s - - [20/Nov/2026:10:00:%02d +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"x\"\n", client, i)
		}
	}
	file := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(file, []byte(log.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	o := &replay.Options{Logs: []string{file}, Format: "auto"}
	d := compared(t, oneZone("key {remote_host}\nrate 10/1m"), oneZone("key {remote_host}\nrate 5/1m\nexempt 198.51.100.0/24"), o)
	if len(d.Log.Unknown) != 3 || !strings.HasPrefix(d.Log.Unknown[0], "the host") {
		t.Errorf("not known: %q", d.Log.Unknown)
	}
	d.Log.Unknown = nil
	text, _ := json.Marshal(d.Log) // without it, nothing is as wanted
	const want = `{"requests":23,"refused_before":2,"refused_now":3,"clients":3,"clients_refused_more":1,"clients_refused_less":1,` +
		`"more":[{"client":"192.0.2.2","requests":8,"refused_before":0,"refused_now":3}],"less":[{"client":"198.51.100.3","requests":12,"refused_before":2,"refused_now":0}]}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	d = compared(t, oneZone("key {path}\nrate 20/1m"), oneZone("key {path}\nrate 5/1m\nmax_wait 1ms"), o)
	if of := (adminapi.ClientDiff{Client: "/", Requests: 23, Was: 3, Is: 18}); len(d.Log.MoreOf) != 1 || d.Log.MoreOf[0] != of || d.Log.Clients != 3 {
		t.Errorf("got %+v, want %+v, the key of the zone", d.Log, of)
	}
	d = compared(t, oneZone("rate 1000/1m"), oneZone("rate 22/1m"), o)
	if of := (adminapi.ClientDiff{Client: "198.51.100.3", Requests: 12, Is: 1}); len(d.Log.MoreOf) != 1 || d.Log.MoreOf[0] != of {
		t.Errorf("got %+v, want %+v, the address, because the zone has no key", d.Log, of)
	}
}

// TestChanges: what operators and reloads change is logged with its author, in order. A reload that changes no zone is
// no change.
func TestChanges(t *testing.T) {
	address := caddytest.FreeAddress(t)
	operators := caddytest.RunConfig(t, address, oneZone("key {client_ip}\nrate 100/1m\noverrides"))
	const key = "zones/z/key/override?key=192.0.2.1"
	caddytest.Admin(t, http.MethodPut, key, `{"limit": "5/1m", "note": "T-4711"}`)
	caddytest.Admin(t, http.MethodDelete, key, "")
	caddytest.Admin(t, http.MethodDelete, key, "") // there is none
	caddytest.Admin(t, http.MethodPut, "zones/z/key/ban?key=192.0.2.1", `{"for": "1h"}`)
	caddytest.Admin(t, http.MethodDelete, "zones/z/key/ban?key=192.0.2.1", "")
	caddytest.Admin(t, http.MethodDelete, "zones/z/key?key=192.0.2.1", "") // it has used nothing
	none := caddytest.RunConfig(t, address, oneZone("key {client_ip}\nrate 100/1m\noverrides"))
	reload := caddytest.RunConfig(t, address, oneZone("key {client_ip}\nrate 60/1m\noverrides"))
	want := []string{
		"override sliding_window_log 5/1m T-4711", "clear was sliding_window_log 5/1m T-4711", "ban banned for 1h ", "unban  ",
		"reload zone z: max_events now 60, was 100 ",
	}
	var got []string
	for _, logs := range []*observer.ObservedLogs{operators, none, reload} {
		for _, line := range logs.FilterMessage("limits changed").All() {
			fields := line.ContextMap()
			if logs == operators && fields["action"] == "reload" {
				continue // of what another test has loaded before
			}
			text := fmt.Sprint(fields["action"], " ", cmp.Or(fields["what"], any("")), " ", cmp.Or(fields["note"], any("")))
			got = append(got, text)
			if is := fields["action"] == "reload"; is != (fields["by"] == nil) || is == (fields["zone"] == "z") {
				t.Errorf("%s: %+v", text, fields)
			}
			if line.LoggerName != "http.handlers.rate_limit.changes" {
				t.Errorf("%s: logged by %s", text, line.LoggerName)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

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
		if len(d.Zones) != 1 || len(d.Zones[0].Changes) != 1 || d.Zones[0].Changes[0] != "cost now 3, was 2" {
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
			text = d.Zones[0].Changes[0]
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
		texts = append(texts, z.Changes...)
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
