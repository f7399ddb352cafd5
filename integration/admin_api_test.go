package integration_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// awkwardKeys are keys that are hard to pass through paths, queries, JSON, shells and tables.
var awkwardKeys = []string{
	"plain", "", "a/b", "a//b/../c", ".", "..", `"double" 'single' \back`, "line\nbreak\ttab", "grüße 世界",
	"\xff\xfe raw", "half \xc3", "nul\x00byte", "-hyphen", "100%25 a+b&c=d;e#f", "\x1b[31mred\u202e", "{client_ip} $HOME `id`", "  two  ",
}

// byQuery returns a site with a zone whose key comes from the query, and with more options.
func byQuery(store string, options ...string) string {
	return caddyfile("", `
		rate_limit {
			zone "odd / zone" {
				key {http.request.uri.query.k}
				events 2
				window 1h
				`+strings.Join(options, "\n")+`
			}
			`+store+`
		}
		respond ok`)
}

const oddZone = "/rate_limit/zones/odd%20%2F%20zone"

func withKey(key string) string { return "/?k=" + url.QueryEscape(key) }

// keyState is the admin API's answer about a key.
type keyState struct {
	Zone       string  `json:"zone"`
	Key        string  `json:"key"`
	KeyBase64  string  `json:"key_base64"`
	Limit      string  `json:"limit"`
	Refused    bool    `json:"refused"`
	Quota      int64   `json:"quota"`
	Used       int64   `json:"used"`
	Remaining  int64   `json:"remaining"`
	NextAfter  float64 `json:"next_after"`
	ResetAfter float64 `json:"reset_after"`
	Outcome    string  `json:"outcome"`
	Ban        struct {
		By     string  `json:"by"`
		EndsIn float64 `json:"ends_in"`
	} `json:"ban"`
	Override struct {
		Kind   string  `json:"kind"`
		Limit  string  `json:"limit"`
		Note   string  `json:"note"`
		EndsIn float64 `json:"ends_in"`
	} `json:"override"`
	Lately struct {
		Refused uint64 `json:"refused"`
	} `json:"lately"`
	Error string `json:"error"`
}

func (k *keyState) is(key string) bool {
	if k.KeyBase64 == "" {
		return k.Key == key
	}
	raw, err := base64.StdEncoding.DecodeString(k.KeyBase64)
	return err == nil && string(raw) == key
}

// ask decodes an answer of the admin API.
func (s *server) ask(path string, answer any) {
	s.t.Helper()
	text, err := s.admin("GET", path, "", "")
	if err == nil {
		err = json.Unmarshal([]byte(text), answer)
	}
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", path, err, text)
	}
}

// TestAdminKeys: keys of any bytes can be looked up, which charges nothing, and reset.
func TestAdminKeys(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store string) {
		s := startCaddy(t, byQuery(store, "overrides"))
		client := newClient(t, "")
		for _, key := range awkwardKeys {
			if got := s.admitted(client, 4, withKey(key)); got != 2 {
				t.Fatalf("key %q: %d of 4 admitted, want 2", key, got)
			}
			for _, query := range []string{
				"?key=" + url.QueryEscape(key), "?part=" + url.QueryEscape(key),
				"?key_base64=" + url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(key))),
			} {
				var k keyState
				s.ask(oddZone+"/key"+query, &k)
				if !k.is(key) || k.Used != 2 || k.Remaining != 0 || k.Quota != 2 || !k.Refused || k.NextAfter <= 0 || k.ResetAfter > 3600 {
					t.Errorf("key %q, %s: %+v", key, query, k)
				}
			}
			s.must("DELETE", oddZone+"/key?key="+url.QueryEscape(key), "")
			var k keyState
			s.ask(oddZone+"/key?key="+url.QueryEscape(key), &k)
			if k.Used != 0 || k.Remaining != 2 || k.Refused || k.NextAfter != 0 {
				t.Errorf("key %q after the reset: %+v", key, k)
			}
			if got := s.admitted(client, 3, withKey(key)); got != 2 {
				t.Errorf("key %q: %d of 3 admitted after the reset, want 2", key, got)
			}
		}
		var zones []struct {
			Name   string            `json:"name"`
			Totals map[string]uint64 `json:"totals"`
			Near   uint64            `json:"near_limit"`
		}
		s.ask("/rate_limit/zones", &zones)
		n := uint64(len(awkwardKeys))
		if len(zones) != 1 || zones[0].Name != "odd / zone" || zones[0].Totals["allowed"] != 4*n || zones[0].Totals["limited"] != 3*n || zones[0].Near != 2*n {
			t.Errorf("%+v, want %d allowed, %d of them near the limit, and %d refused", zones, 4*n, 2*n, 3*n)
		}
		var top struct {
			Keys []struct {
				keyState
				Requests uint64 `json:"requests"`
				Refused  uint64 `json:"refused"`
			} `json:"keys"`
		}
		s.ask(oddZone+"/top?by=refused&n=100", &top)
		found := make(map[string]bool)
		for _, k := range top.Keys {
			for _, key := range awkwardKeys {
				if k.is(key) {
					found[key] = k.Requests == 7 && k.Refused == 3
				}
			}
		}
		for _, key := range awkwardKeys {
			if !found[key] {
				t.Errorf("key %q is not among those refused most, with 3 of 7 requests: %+v", key, top)
			}
		}
		for _, key := range append([]string{strings.Repeat("/very \xf0long", 1000)}, awkwardKeys...) {
			s.overrides(client, key)
		}
	})
}

// must sends a request to the admin API, and ends the test if it fails.
func (s *server) must(method, path, body string) {
	s.t.Helper()
	if _, err := s.admin(method, path, "application/json", body); err != nil {
		s.t.Fatal(err)
	}
}

// overrides sets each kind of override for a key of the odd zone.
func (s *server) overrides(client *http.Client, key string) {
	s.t.Helper()
	named := "?key=" + url.QueryEscape(key)
	encoded := "?key_base64=" + url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(key)))
	admits := func(what string, n, want int) {
		s.t.Helper()
		if got := s.admitted(client, n, withKey(key)); got != want {
			s.t.Errorf("key %.40q: %s: %d of %d admitted, want %d", key, what, got, n, want)
		}
	}
	is := func(what string, right func(k *keyState) bool) {
		s.t.Helper()
		var k keyState
		if s.ask(oddZone+"/key"+encoded, &k); !k.is(key) || !right(&k) {
			s.t.Errorf("key %.40q: %s: %+v", key, what, k)
		}
	}
	s.must("DELETE", oddZone+"/key"+encoded, "")
	admits("afresh", 3, 2)
	s.must("PUT", oddZone+"/key/override"+named, `{"limit": "4", "note": "grüße <\n>", "for": "2h"}`)
	admits("4 in place of 2", 3, 2)
	is("4 in place of 2", func(k *keyState) bool {
		o := k.Override
		return k.Outcome == "limited" && k.Quota == 4 && k.Used == 4 && o.Kind == "limit" && o.Limit == "sliding_window_log 4/1h" &&
			o.Note == "grüße <\n>" && o.EndsIn > 7000 && o.EndsIn <= 7200
	})
	s.must("PUT", oddZone+"/key/ban"+encoded, "")
	admits("banned", 2, 0)
	is("banned", func(k *keyState) bool {
		return k.Outcome == "banned" && k.Refused && k.Ban.By == "override" && k.Ban.EndsIn == 0 && k.Override.Kind == "banned" && k.Quota == 2
	})
	s.must("PUT", oddZone+"/key/ban"+named, `{"for": "1h"}`)
	is("banned for an hour", func(k *keyState) bool { return k.Outcome == "banned" && k.Ban.EndsIn > 3500 && k.Ban.EndsIn <= 3600 })
	s.must("DELETE", oddZone+"/key/ban"+named, "")
	is("unbanned", func(k *keyState) bool {
		return k.Outcome == "limited" && k.Used == 4 && k.Quota == 2 && k.Override.Kind == "" && k.Ban.By == ""
	})
	s.must("PUT", oddZone+"/key/override"+encoded, `{"exempt": true}`)
	admits("exempt", 5, 5)
	is("exempt", func(k *keyState) bool { return k.Outcome == "exempt" && !k.Refused && k.Override.Kind == "exempt" })
	s.must("DELETE", oddZone+"/key/override"+named, "")
	admits("with the zone's limit again", 1, 0)
}

// TestAdminParts: the values of several placeholders make the same key as in requests, with addresses
// cut to their prefixes.
func TestAdminParts(t *testing.T) {
	t.Parallel()
	s := startCaddy(t, caddyfile("servers {\ntrusted_proxies static 127.0.0.0/8\n}", `
		rate_limit {
			zone pair {
				key "{client_ip} for {http.request.uri.query.k}"
				events 2
				window 1h
			}
			zone ip {
				key {client_ip}
				events 5
				window 1h
			}
			zone all {
				events 9
				window 1h
			}
		}
		respond ok`))
	if got := s.admitted(newClient(t, ""), 3, withKey("a b"), "X-Forwarded-For", "2001:db8:0:1::7"); got != 2 {
		t.Fatalf("%d of 3 admitted", got)
	}
	for path, used := range map[string]int64{
		"pair/key?part=2001:db8:0:1::9&part=a%20b":          2,
		"pair/key?part=2001:db8:0:2::9&part=a%20b":          0,
		"pair/key?key=17:2001:db8:0:1::/64%20for%203:a%20b": 2,
		"ip/key?key=2001:DB8:0:1::ffff":                     2,
		"ip/key?key=2001:db8:0:1::/64":                      2,
		"ip/key?key=2001:db8::1":                            0,
		"all/key":                                           2,
	} {
		var k keyState
		if s.ask("/rate_limit/zones/"+path, &k); k.Used != used {
			t.Errorf("%s: %+v, want %d used", path, k, used)
		}
	}
}

// TestAdminWhileReloading: during reloads, some of which fail, the admin API knows the zones of the
// running config, and no count is lost.
func TestAdminWhileReloading(t *testing.T) {
	t.Parallel()
	config := byQuery(memory, "overrides")
	s := startCaddy(t, config)
	client := newClient(t, "")
	s.admitted(client, 3, "/?k=a")
	broken := strings.Replace(config, "odd / zone", "never", 1)
	broken = strings.Replace(broken, "respond ok", "root * x\ntls /none.crt /none.key", 1)
	var group sync.WaitGroup
	done := make(chan struct{})
	group.Go(func() {
		defer close(done)
		for i := range 6 {
			if i%2 == 0 {
				if err := s.load(broken); err == nil {
					t.Error("the broken config loads")
				}
			} else {
				s.mustLoad(strings.Replace(config, "respond ok", "respond ok"+strings.Repeat("k", i), 1))
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
		if err := s.change("GET", oddZone+"/key?key=a", "", ""); err != nil {
			t.Errorf("while reloading: %v", err)
		}
		asked++
		c := []struct{ method, path, body, want string }{ // each holds from the next request on
			{"PUT", "override", `{"limit": "3"}`, "200 200 200 429"},
			{"PUT", "ban", "", "429 429 429 429"},
			{"DELETE", "override", "", "200 200 429 429"},
		}[asked%3]
		for _, change := range [][3]string{{"DELETE", "/key?key=b"}, {c.method, "/key/" + c.path + "?key=b", c.body}} {
			if err := s.change(change[0], oddZone+change[1], "", change[2]); err != nil {
				t.Errorf("while reloading: %v", err)
			}
		}
		var got []string
		for range 4 {
			a, err := sendAcross(client, s.url("/?k=b"))
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, strconv.Itoa(a.status))
			totals[got[len(got)-1]]++
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s %s while reloading: %s, want %s", c.method, c.path, got, c.want)
		}
	}
	group.Wait()
	var k keyState
	s.ask(oddZone+"/key?key=a", &k)
	var zone struct {
		Totals map[string]uint64 `json:"totals"`
	}
	s.ask(oddZone, &zone)
	if k.Used != 2 || zone.Totals["allowed"] != totals["200"] || zone.Totals["limited"]+zone.Totals["banned"] != totals["429"] {
		t.Errorf("after %d looks: %+v, totals %v", asked, k, zone.Totals)
	}
	s.mustLoad(caddyfile("", "respond none"))
	if _, err := s.admin("GET", oddZone, "", ""); err == nil || !strings.Contains(err.Error(), "has no zones") {
		t.Errorf("a zone that is gone: %v", err)
	}
}

// TestAdminWhileRedisIsDown: answers say that Redis is down, why, and what happens to requests
// meanwhile.
func TestAdminWhileRedisIsDown(t *testing.T) {
	t.Parallel()
	redisServer := redistest.Start(t)
	s := startCaddy(t, byQuery("store redis {\naddress "+redisServer.Addr()+"\npassword {$SECRET}\n}\non_store_error local", "overrides"), "SECRET=s3cr3t-hunter2")
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
	_, err := s.admin("GET", oddZone+"/key?key=a", "", "")
	for _, want := range []string{"503", redisServer.Addr(), "does not answer", "each instance counts for itself"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Redis is down: %v, want %q", err, want)
		}
	}
	for _, c := range []struct{ method, path, body string }{
		{"DELETE", "key", ""}, {"PUT", "key/override", `{"limit": "5"}`}, {"DELETE", "key/override", ""}, {"PUT", "key/ban", ""}, {"DELETE", "key/ban", ""},
	} {
		_, err := s.admin(c.method, oddZone+"/"+c.path+"?key=a", "", c.body)
		if err == nil || !strings.Contains(err.Error(), ": 503 ") || !strings.Contains(err.Error(), "does not answer") {
			t.Errorf("%s %s while Redis is down: %v", c.method, c.path, err)
		}
	}
	var found []keyState
	if s.ask("/rate_limit/key?key=a", &found); len(found) != 1 || found[0].Zone != "odd / zone" || !strings.Contains(found[0].Error, "does not answer") {
		t.Errorf("%+v", found)
	}
	var all stores
	s.ask("/rate_limit/stores", &all)
	if len(all) != 1 || all[0].Answers == nil || *all[0].Answers || all[0].Error == "" || all[0].Details.Mode != "standalone" || len(all[0].Details.Addresses) != 1 || all[0].Name != "redis "+redisServer.Addr() {
		t.Errorf("%+v", all)
	}
	text, err := s.admin("GET", "/rate_limit/stores", "", "")
	if err != nil || strings.Contains(text, "hunter2") {
		t.Errorf("%v %s", err, text)
	}
}
