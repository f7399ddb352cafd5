package limiter_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// passing sends a request from a client through a handler. It returns the status, and behind it the zones that have marked
// the request: "200", "200 soft", "429".
func passing(t *testing.T, h caddytest.Handler, behind caddyhttp.HandlerFunc, header ...string) string {
	t.Helper()
	w := httptest.NewRecorder()
	r := caddytest.Request(w, "203.0.113.7:1000")
	caddyhttp.SetVar(r.Context(), caddyhttp.ClientIPVarKey, "203.0.113.7")
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
		caddyhttp.SetVar(r.Context(), strings.ToLower(header[i]), header[i+1])
	}
	var marks []string
	err := h.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		marks = r.Header["X-Over"]
		return behind(w, r)
	}))
	status := w.Code
	if err != nil {
		status = caddytest.StatusOf(err)
	}
	return strings.TrimSpace(fmt.Sprint(status, " ", strings.Join(marks, ",")))
}

// softZone is a zone with over pass.
func softZone(name, options string) string {
	return fmt.Sprintf(`%q: {"key": "{http.request.header.User}", "over": "pass", "over_header": "X-Over", %s}`, name, options)
}

// overCells are what a zone with over pass does beside other options, of its own and of other zones. What makes no
// sense together is in testdata/load/policy.txtar.
var overCells = []struct {
	name    string
	handler string // options
	zones   string // %s is the zone's name, which is different in each cell
	header  []string
	want    []string // of requests, one after the other
	used    int64    // of the strict zone, or else of the soft one
}{
	{"alone", "", softZone("%s", `"max_events": 2, "window": "1h"`), nil, []string{"200", "200", "200 %s", "200 %s"}, 2},
	{
		"a strict zone refuses", "", softZone("%s", `"max_events": 1, "window": "1h"`) + `, "strict %[1]s": {"max_events": 2, "window": "1h"}`, nil,
		[]string{"200", "200 %s", "429", "429"},
		2,
	},
	{
		"a strict zone refuses first", "", softZone("%s", `"max_events": 2, "window": "1h"`) + `, "0 %[1]s": {"max_events": 1, "window": "1h"}`, nil,
		[]string{"200", "429", "429"},
		1,
	},
	{
		"a dry run", "", softZone("%s", `"max_events": 2, "window": "1h"`) + `, "dry %[1]s": {"max_events": 1, "window": "1h", "dry_run": true}`, nil,
		[]string{"200", "200", "200 %s"},
		2,
	},
	{
		"enforce 0", "", softZone("%s", `"max_events": 1, "window": "1h"`) + `, "dry %[1]s": {"max_events": 1, "window": "1h", "enforce": 0}`, nil,
		[]string{"200", "200 %s"},
		1,
	},
	{
		"a ban of another zone", "", softZone("%s", `"max_events": 1, "window": "1h"`) +
			`, "strict %[1]s": {"max_events": 2, "window": "1h", "ban": {"duration": "1h", "after": 1, "window": "1m"}}`, nil,
		[]string{"200", "200 %s", "429", "429"},
		2,
	},
	{
		"a wait in another zone", "", softZone("%s", `"max_events": 1, "window": "1h"`) +
			`, "strict %[1]s": {"algorithm": "token_bucket", "max_events": 20, "window": "1s", "burst": 1, "max_wait": "1h"}`, nil,
		[]string{"200", "200 %s", "200 %s"},
		-1,
	},
	{
		"an adaptive zone", "", softZone("%s", `"max_events": 1, "window": "1h"`) + `, "gate %[1]s": {"algorithm": "adaptive"}`, nil,
		[]string{"200", "200 %s"},
		1,
	},
	{"events 0", "", softZone("%s", `"max_events": 0, "window": "1h"`), nil, []string{"200 %s", "200 %s"}, -1},
	{"cost 0", "", softZone("%s", `"max_events": 0, "window": "1h", "cost": 0`), nil, []string{"200", "200"}, -1},
	{"a cost above the limit", "", softZone("%s", `"max_events": 2, "window": "1h", "cost": 3`), nil, []string{"200 %s", "200 %s"}, 0},
	{"cost_header", "", softZone("%s", `"max_events": 5, "window": "1h", "cost_header": "X-Cost"`), nil, []string{"200"}, 4},
	{"charge on_response", "", softZone("%s", `"max_events": 1, "window": "1h", "charge_on_response": {"status_code": [2]}`), nil, []string{"200", "200 %s"}, 1},
	{"a response that does not count", "", softZone("%s", `"max_events": 1, "window": "1h", "charge_on_response": {"status_code": [5]}`), nil, []string{"200"}, 0},
	{"a plan", "", softZone("%s", `"plan": {"of": "{http.vars.plan}", "reject": 402, "plans": {"a": {"max_events": 1, "window": "1h"}, "b": {"unlimited": true}}}`), []string{"Plan", "a"}, []string{"200", "200 %s"}, 1},
	{"an unlimited plan", "", softZone("%s", `"plan": {"of": "{http.vars.plan}", "reject": 402, "plans": {"a": {"max_events": 1, "window": "1h"}, "b": {"unlimited": true}}}`), []string{"Plan", "b"}, []string{"200", "200"}, -1},
	{"no plan", "", softZone("%s", `"plan": {"of": "{http.vars.plan}", "reject": 402, "plans": {"a": {"max_events": 1, "window": "1h"}}}`), nil, []string{"402"}, -1},
	{"block", "", softZone("%s", `"max_events": 9, "window": "1h", "block": [{"header": {"User": ["a"]}}]`), nil, []string{"403", "403"}, -1},
	{"exempt", "", softZone("%s", `"max_events": 0, "window": "1h", "exempt": [{"header": {"User": ["a"]}}]`), nil, []string{"200", "200"}, -1},
	{"missing_key reject", "", softZone("%s", `"max_events": 9, "window": "1h", "missing_key": "reject"`), []string{"User", ""}, []string{"401"}, -1},
	{"repeated_values", "", softZone("%s", `"max_events": 9, "window": "1h"`), []string{"User", "a", "User", "b"}, []string{"400"}, -1},
	{"invalid_limit", "", softZone("%s", `"max_events": "{http.vars.quota}", "window": "1h"`), nil, []string{"403"}, -1},
	{"headers off", "", softZone("%s", `"max_events": 1, "window": "1h", "headers": "off"`), nil, []string{"200", "200 %s"}, 1},
	{"deny of the handler", `"on_store_error": "deny", `, softZone("%s", `"max_events": 1, "window": "1h"`), nil, []string{"200", "200 %s"}, 1},
	{"on_store_error local", "", softZone("%s", `"max_events": 1, "window": "1h", "on_store_error": "local"`), nil, []string{"200", "200 %s"}, 1},
	{"overrides", "", softZone("%s", `"max_events": 1, "window": "1h", "overrides": true`), nil, []string{"200", "200 %s"}, 1},
}

// TestOverPassBesideOtherOptions: see overCells. Each cell charges what it should, in each kind of store.
func TestOverPassBesideOtherOptions(t *testing.T) {
	caddytest.EachStore(t, func(t *testing.T, kept *caddytest.Kept) {
		for _, c := range overCells {
			name := "soft " + c.name
			named := func(text string) string {
				return strings.NewReplacer("%s", name, "%[1]s", name).Replace(text)
			}
			h := caddytest.Load(t, `{`+kept.Option()+`"log": "off", `+c.handler+`"rate_limits": {`+named(c.zones)+`}}`)
			header := c.header
			if len(header) == 0 || header[0] != "User" {
				header = append([]string{"User", "a"}, header...)
			}
			for i, want := range c.want {
				if got := passing(t, h, answersWithCost, header...); got != named(want) {
					t.Errorf("%s: request %d: %s, want %s", c.name, i+1, got, named(want))
				}
			}
			zone, key := name, "a"
			for _, prefix := range []string{"strict ", "0 "} {
				if strings.Contains(c.zones, `"`+prefix) {
					zone, key = prefix+name, ""
				}
			}
			if c.used < 0 {
				continue
			}
			if got := kept.Used(t, zone, key); got != c.used {
				t.Errorf("%s: %d used in zone %s, want %d", c.name, got, zone, c.used)
			}
		}
	})
}

// answersWithCost is an upstream whose responses have cost 4 at first.
func answersWithCost(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("X-Cost", "4")
	_, err := w.Write([]byte("four"))
	return err
}

// TestOverPassOfSlots: requests above a limit of slots are marked, and hold none.
func TestOverPassOfSlots(t *testing.T) {
	caddytest.EachStore(t, func(t *testing.T, kept *caddytest.Kept) {
		h := caddytest.Load(t, `{`+kept.Option()+`"log": "off", "rate_limits": {`+softZone("slots", `"algorithm": "concurrency", "max_events": 1`)+`}}`)
		nothing := func(http.ResponseWriter, *http.Request) error { return nil }
		for range 3 {
			within := ""
			first := passing(t, h, func(http.ResponseWriter, *http.Request) error {
				within = passing(t, h, nothing, "User", "a") + ", " + passing(t, h, nothing, "User", "a")
				return nil
			}, "User", "a")
			if first != "200" || within != "200 slots, 200 slots" {
				t.Errorf("got %s, and within it %s", first, within)
			}
			kept.Used(t, "slots", "") // until the slot is back
		}
	})
}

// TestOverPassWhileTheStoreIsSilent: without an answer nothing is marked, and the zone refuses nothing, whatever the
// handler says. With local it goes on to mark.
func TestOverPassWhileTheStoreIsSilent(t *testing.T) {
	for _, c := range []struct{ name, handler, options, more, want string }{
		{"allow", "", "", "", "200,200"},
		{"deny", `"on_store_error": "deny", `, "", "", "200,200"},
		{"deny of another zone", "", "", `, "strict": {"max_events": 9, "window": "1h", "on_store_error": "deny"}`, "503,503"},
		{"local", "", `"on_store_error": "local", `, "", "200,200 local"},
		{"local of another zone", "", "", `, "strict": {"max_events": 1, "window": "1h", "on_store_error": "local"}`, "200,429"},
		{"local beside deny", `"on_store_error": "deny", `, `"on_store_error": "local", `, "", "200,200 local beside deny"},
	} {
		h := caddytest.Load(t, `{`+caddytest.Failing(t, caddytest.ErrNoAnswer).Option()+`"instances": 1, "log": "off", `+c.handler+
			`"rate_limits": {`+softZone(c.name, c.options+`"max_events": 1, "window": "1h"`)+c.more+`}}`)
		nothing := func(http.ResponseWriter, *http.Request) error { return nil }
		got := passing(t, h, nothing, "User", "a") + "," + passing(t, h, nothing, "User", "a")
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestOverPassAndOperators: a key that an operator has banned is refused, and nothing is charged for it. An exemption and
// another limit hold, too.
func TestOverPassAndOperators(t *testing.T) {
	caddytest.EachStore(t, func(t *testing.T, kept *caddytest.Kept) {
		ctx := caddytest.Config(t)
		h := caddytest.LoadInto(t, ctx, `{`+kept.Option()+`"log": "off", "rate_limits": {
			"a all": {"max_events": 100, "window": "1h"},
			"dry": {"max_events": 100, "window": "1h", "dry_run": true},
			`+softZone("keys", `"max_events": 1, "window": "1h", "overrides": true`)+`,
			`+softZone("nets", `"max_events": 100, "window": "1h", "overrides": true`)+`,
			"of nets": {"key": "{http.vars.client_ip}", "match": [{"header": {"Net": ["*"]}}], "max_events": 1, "window": "1h", "overrides": true, "over": "pass"},
			"slots": {"algorithm": "concurrency", "max_events": 100}}}`)
		caddytest.Run(t, ctx)
		nothing := func(http.ResponseWriter, *http.Request) error { return nil }
		set := func(zone, what, key, body string) {
			t.Helper()
			caddytest.Admin(t, http.MethodPut, "zones/"+zone+"/key/"+what+"?key="+key, body)
		}
		set("keys", "ban", "banned", `{"for": "20m"}`)
		set("keys", "override", "exempt", `{"exempt": true}`)
		set("keys", "override", "more", `{"limit": 2}`)
		for _, c := range [][]string{
			{"other", "200", "200 keys"}, {"more", "200", "200", "200 keys"}, {"exempt", "200", "200"}, {"banned", "429", "429", "429"}, {"other", "200 keys"},
		} {
			for i, want := range c[1:] {
				if got := passing(t, h, nothing, "User", c[0]); got != want {
					t.Errorf("key %s, request %d: %s, want %s", c[0], i+1, got, want)
				}
			}
		}
		for _, zone := range []string{"a all", "dry"} {
			if got := kept.Used(t, zone, ""); got != 8 {
				t.Errorf("%d used in zone %s, want 8: those of the banned key are given back", got, zone)
			}
		}
		if got := kept.Used(t, "slots", ""); got != 0 {
			t.Errorf("%d slots are taken, want none", got)
		}
		caddytest.Admin(t, http.MethodPut, "zones/of%20nets/key/ban?key=203.0.113.0/24", `{"for": "20m"}`)
		if got := passing(t, h, nothing, "User", "other", "Net", "x"); got != "429" {
			t.Errorf("from a banned network: %s, want 429", got)
		}
	})
}
