//go:build deep

package admin_test

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

const oddZone = "/rate_limit/zones/odd%20%2F%20zone"

// TestAdminKeys: keys of any bytes can be looked up, which charges nothing, and reset.
func TestAdminKeys(t *testing.T) {
	t.Parallel()
	harness.EachStore(t, func(t *testing.T, store string) {
		s := harness.StartCaddy(t, harness.ByQuery(store, "overrides"))
		client := harness.NewClient(t, "")
		for _, key := range harness.AwkwardKeys {
			if got := s.Admitted(client, 4, harness.WithKey(key)); got != 2 {
				t.Fatalf("key %q: %d of 4 admitted, want 2", key, got)
			}
			for _, query := range []string{
				"?key=" + url.QueryEscape(key), "?part=" + url.QueryEscape(key),
				"?key_base64=" + url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(key))),
			} {
				var k harness.KeyState
				s.Ask(oddZone+"/key"+query, &k)
				if !k.Is(key) || k.Used != 2 || k.Remaining != 0 || k.Quota != 2 || !k.Refused || k.NextAfter <= 0 || k.ResetAfter > 3600 {
					t.Errorf("key %q, %s: %+v", key, query, k)
				}
			}
			s.Must("DELETE", oddZone+"/key?key="+url.QueryEscape(key), "")
			var k harness.KeyState
			s.Ask(oddZone+"/key?key="+url.QueryEscape(key), &k)
			if k.Used != 0 || k.Remaining != 2 || k.Refused || k.NextAfter != 0 {
				t.Errorf("key %q after the reset: %+v", key, k)
			}
			if got := s.Admitted(client, 3, harness.WithKey(key)); got != 2 {
				t.Errorf("key %q: %d of 3 admitted after the reset, want 2", key, got)
			}
		}
		var zones []struct {
			Name   string            `json:"name"`
			Totals map[string]uint64 `json:"totals"`
			Near   uint64            `json:"near_limit"`
		}
		s.Ask("/rate_limit/zones", &zones)
		n := uint64(len(harness.AwkwardKeys))
		if len(zones) != 1 || zones[0].Name != "odd / zone" || zones[0].Totals["allowed"] != 4*n || zones[0].Totals["limited"] != 3*n || zones[0].Near != 2*n {
			t.Errorf("%+v, want %d allowed, %d of them near the limit, and %d refused", zones, 4*n, 2*n, 3*n)
		}
		var top struct {
			Keys []struct {
				harness.KeyState
				Requests uint64 `json:"requests"`
				Refused  uint64 `json:"refused"`
			} `json:"keys"`
		}
		s.Ask(oddZone+"/top?by=refused&n=100", &top)
		found := make(map[string]bool)
		for _, k := range top.Keys {
			for _, key := range harness.AwkwardKeys {
				if k.Is(key) {
					found[key] = k.Requests == 7 && k.Refused == 3
				}
			}
		}
		for _, key := range harness.AwkwardKeys {
			if !found[key] {
				t.Errorf("key %q is not among those refused most, with 3 of 7 requests: %+v", key, top)
			}
		}
		for _, key := range append([]string{strings.Repeat("/very \xf0long", 1000)}, harness.AwkwardKeys...) {
			overrides(s, client, key)
		}
	})
}

// overrides sets each kind of override for a key of the odd zone.
func overrides(s *harness.Server, client *http.Client, key string) {
	s.T.Helper()
	named := "?key=" + url.QueryEscape(key)
	encoded := "?key_base64=" + url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(key)))
	admits := func(what string, n, want int) {
		s.T.Helper()
		if got := s.Admitted(client, n, harness.WithKey(key)); got != want {
			s.T.Errorf("key %.40q: %s: %d of %d admitted, want %d", key, what, got, n, want)
		}
	}
	is := func(what string, right func(k *harness.KeyState) bool) {
		s.T.Helper()
		var k harness.KeyState
		if s.Ask(oddZone+"/key"+encoded, &k); !k.Is(key) || !right(&k) {
			s.T.Errorf("key %.40q: %s: %+v", key, what, k)
		}
	}
	s.Must("DELETE", oddZone+"/key"+encoded, "")
	admits("afresh", 3, 2)
	s.Must("PUT", oddZone+"/key/override"+named, `{"limit": "4", "note": "grüße <\n>", "for": "2h"}`)
	admits("4 in place of 2", 3, 2)
	is("4 in place of 2", func(k *harness.KeyState) bool {
		o := k.Override
		return k.Outcome == "limited" && k.Quota == 4 && k.Used == 4 && o.Kind == "limit" && o.Limit == "sliding_window_log 4/1h" &&
			o.Note == "grüße <\n>" && o.EndsIn > 7000 && o.EndsIn <= 7200
	})
	s.Must("PUT", oddZone+"/key/ban"+encoded, "")
	admits("banned", 2, 0)
	is("banned", func(k *harness.KeyState) bool {
		return k.Outcome == "banned" && k.Refused && k.Ban.By == "override" && k.Ban.EndsIn == 0 && k.Override.Kind == "banned" && k.Quota == 2
	})
	s.Must("PUT", oddZone+"/key/ban"+named, `{"for": "1h"}`)
	is("banned for an hour", func(k *harness.KeyState) bool {
		return k.Outcome == "banned" && k.Ban.EndsIn > 3500 && k.Ban.EndsIn <= 3600
	})
	s.Must("DELETE", oddZone+"/key/ban"+named, "")
	is("unbanned", func(k *harness.KeyState) bool {
		return k.Outcome == "limited" && k.Used == 4 && k.Quota == 2 && k.Override.Kind == "" && k.Ban.By == ""
	})
	s.Must("PUT", oddZone+"/key/override"+encoded, `{"exempt": true}`)
	admits("exempt", 5, 5)
	is("exempt", func(k *harness.KeyState) bool {
		return k.Outcome == "exempt" && !k.Refused && k.Override.Kind == "exempt"
	})
	s.Must("DELETE", oddZone+"/key/override"+named, "")
	admits("with the zone's limit again", 1, 0)
}

// TestAdminWhileReloading: during reloads, some of which fail, the admin API knows the zones of the
// running config, and no count is lost.
func TestAdminWhileReloading(t *testing.T) {
	t.Parallel()
	config := harness.ByQuery(harness.Memory, "overrides")
	s := harness.StartCaddy(t, config)
	client := harness.NewClient(t, "")
	s.Admitted(client, 3, "/?k=a")
	broken := strings.Replace(config, "odd / zone", "never", 1)
	broken = strings.Replace(broken, "respond ok", "root * x\ntls /none.crt /none.key", 1)
	var group sync.WaitGroup
	done := make(chan struct{})
	group.Go(func() {
		defer close(done)
		for i := range 6 {
			if i%2 == 0 {
				if err := s.Load(broken); err == nil {
					t.Error("the broken config loads")
				}
			} else {
				s.MustLoad(strings.Replace(config, "respond ok", "respond ok"+strings.Repeat("k", i), 1))
			}
		}
	})
	asked, totals := 0, map[string]uint64{"200": 2, "429": 1}
	for reloading := true; reloading; {
		select {
		case <-done:
			reloading = false
		default:
		}
		if err := s.Change("GET", oddZone+"/key?key=a", "", ""); err != nil {
			t.Errorf("while reloading: %v", err)
		}
		asked++
		c := []struct{ method, path, body, want string }{ // each holds from the next request on
			{"PUT", "override", `{"limit": "3"}`, "200 200 200 429"},
			{"PUT", "ban", "", "429 429 429 429"},
			{"DELETE", "override", "", "200 200 429 429"},
		}[asked%3]
		for _, change := range [][3]string{{"DELETE", "/key?key=b"}, {c.method, "/key/" + c.path + "?key=b", c.body}} {
			if err := s.Change(change[0], oddZone+change[1], "", change[2]); err != nil {
				t.Errorf("while reloading: %v", err)
			}
		}
		var got []string
		for range 4 {
			a, err := harness.SendAcross(client, s.URL("/?k=b"))
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, strconv.Itoa(a.Status))
			totals[got[len(got)-1]]++
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s %s while reloading: %s, want %s", c.method, c.path, got, c.want)
		}
	}
	group.Wait()
	var k harness.KeyState
	s.Ask(oddZone+"/key?key=a", &k)
	var zone struct {
		Totals map[string]uint64 `json:"totals"`
	}
	s.Ask(oddZone, &zone)
	if k.Used != 2 || zone.Totals["allowed"] != totals["200"] || zone.Totals["limited"]+zone.Totals["banned"] != totals["429"] {
		t.Errorf("after %d looks: %+v, totals %v", asked, k, zone.Totals)
	}
	s.MustLoad(harness.Caddyfile("", "respond none"))
	if _, err := s.Admin("GET", oddZone, "", ""); err == nil || !strings.Contains(err.Error(), "has no zones") {
		t.Errorf("a zone that is gone: %v", err)
	}
}

// TestAdminWhileRedisIsDown: answers say that Redis is down, why, and what happens to requests
// meanwhile.
func TestAdminWhileRedisIsDown(t *testing.T) {
	t.Parallel()
	redisServer := redistest.Start(t)
	s := harness.StartCaddy(t, harness.ByQuery("store redis {\naddress "+redisServer.Addr()+"\npassword {$SECRET}\n}\non_store_error local", "overrides"), "SECRET=s3cr3t-hunter2")
	type stores []struct {
		Name    string `json:"name"`
		Answers *bool  `json:"answers"`
		Error   string `json:"error"`
		Breaker string `json:"breaker"`
		Details struct {
			Mode      string   `json:"mode"`
			Addresses []string `json:"addresses"`
		} `json:"details"`
	}
	redisServer.Kill()
	_, err := s.Admin("GET", oddZone+"/key?key=a", "", "")
	for _, want := range []string{"503", redisServer.Addr(), "does not answer", "each instance counts for itself"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Redis is down: %v, want %q", err, want)
		}
	}
	for _, c := range []struct{ method, path, body string }{
		{"DELETE", "key", ""}, {"PUT", "key/override", `{"limit": "5"}`}, {"DELETE", "key/override", ""}, {"PUT", "key/ban", ""}, {"DELETE", "key/ban", ""},
	} {
		_, err := s.Admin(c.method, oddZone+"/"+c.path+"?key=a", "", c.body)
		if err == nil || !strings.Contains(err.Error(), ": 503 ") || !strings.Contains(err.Error(), "does not answer") {
			t.Errorf("%s %s while Redis is down: %v", c.method, c.path, err)
		}
	}
	var found []harness.KeyState
	if s.Ask("/rate_limit/key?key=a", &found); len(found) != 1 || found[0].Zone != "odd / zone" || !strings.Contains(found[0].Error, "does not answer") {
		t.Errorf("%+v", found)
	}
	var all stores
	s.Ask("/rate_limit/stores", &all)
	if len(all) != 1 || all[0].Answers == nil || *all[0].Answers || all[0].Error == "" || all[0].Details.Mode != "standalone" || len(all[0].Details.Addresses) != 1 || all[0].Name != "redis "+redisServer.Addr() {
		t.Errorf("%+v", all)
	}
	text, err := s.Admin("GET", "/rate_limit/stores", "", "")
	if err != nil || strings.Contains(text, "hunter2") {
		t.Errorf("%v %s", err, text)
	}
}
