package integration_test

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/redistest"
)

// awkwardKeys are hard to carry: through paths, queries, JSON, shells and tables.
var awkwardKeys = []string{
	"plain", "", "a/b", "a//b/../c", ".", "..", `"double" 'single' \back`, "line\nbreak\ttab", "grüße 世界",
	"\xff\xfe raw", "half \xc3", "nul\x00byte", "-hyphen", "100%25 a+b&c=d;e#f", "\x1b[31mred\u202e", "{client_ip} $HOME `id`", "  two  ",
}

// byQuery is a site with a zone whose key is whatever a client says.
func byQuery(store string) string {
	return caddyfile("", `
		rate_limit {
			zone "odd / zone" {
				key {http.request.uri.query.k}
				events 2
				window 1h
			}
			`+store+`
		}
		respond ok`)
}

const oddZone = "/rate_limit/zones/odd%20%2F%20zone"

func withKey(key string) string { return "/?k=" + url.QueryEscape(key) }

// keyState is what the admin API tells of a key.
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
}

func (k *keyState) is(key string) bool {
	if k.KeyBase64 == "" {
		return k.Key == key
	}
	raw, err := base64.StdEncoding.DecodeString(k.KeyBase64)
	return err == nil && string(raw) == key
}

// ask reads JSON from the admin API.
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

// TestAdminKeys: keys of any bytes can be looked at, which charges nothing, and reset.
func TestAdminKeys(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store string) {
		s := startCaddy(t, byQuery(store))
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
			if _, err := s.admin("DELETE", oddZone+"/key?key="+url.QueryEscape(key), "", ""); err == nil || !strings.Contains(err.Error(), "204") {
				t.Fatalf("key %q: resetting: %v", key, err)
			}
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
		}
		s.ask("/rate_limit/zones", &zones)
		n := uint64(len(awkwardKeys))
		if len(zones) != 1 || zones[0].Name != "odd / zone" || zones[0].Totals["allowed"] != 4*n || zones[0].Totals["refused"] != 3*n {
			t.Errorf("%+v, want %d allowed and %d refused", zones, 4*n, 3*n)
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
	})
}

// TestAdminErrors say what is wrong, and what would be right.
func TestAdminErrors(t *testing.T) {
	t.Parallel()
	s := startCaddy(t, byQuery(memory))
	for _, c := range []struct{ method, path, status, want string }{
		{"GET", "/rate_limit/", "404", "there are zones"},
		{"GET", "/rate_limit/zones/", "404", "no such path"},
		{"GET", "/rate_limit/zones/none", "404", `there are \"odd / zone\"`},
		{"GET", "/rate_limit/zones/odd%20%2F%20zone/keys", "404", "zones/{zone}/key"},
		{"POST", oddZone, "405", "method not allowed"},
		{"GET", oddZone + "/key", "400", "?key=..."},
		{"DELETE", oddZone + "/key", "400", "?key=..."},
		{"GET", oddZone + "/key?key=a&key=b", "400", "say once"},
		{"GET", oddZone + "/key?key=a&part=b", "400", "say once"},
		{"GET", oddZone + "/key?key=%zz", "400", "percent-encode"},
		{"GET", oddZone + "/key?key_base64=!", "400", "key_base64"},
		{"GET", oddZone + "/key?part=a&part=b", "400", "1 placeholders, got 2 parts"},
		{"GET", oddZone + "/key?kye=a", "400", "unknown parameter"},
		{"GET", oddZone + "/top?by=weight", "400", "requests or refused"},
		{"GET", oddZone + "/top?n=0", "400", "from 1 to 1000"},
		{"GET", "/rate_limit/decisions?rate=100000", "400", "from 1 to 1000"},
		{"GET", "/rate_limit/decisions?outcome=banished", "400", "must be one of allowed, refused"},
		{"GET", "/rate_limit/decisions?key=a", "400", "zone=..."},
		{"GET", "/rate_limit/decisions?zone=none", "404", "no zone"},
	} {
		_, err := s.admin(c.method, c.path, "", "")
		if err == nil || !strings.Contains(err.Error(), ": "+c.status+" ") || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `{"error":"`) {
			t.Errorf("%s %s: %v, want %s and %s", c.method, c.path, err, c.status, c.want)
		}
	}
}

// TestAdminParts: the values of several placeholders make the key that requests have, with
// addresses cut as theirs are.
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

// TestAdminWhileReloading: under reloads, some of them of configs that fail, the admin API
// knows the zones of the config that runs, and loses no count.
func TestAdminWhileReloading(t *testing.T) {
	t.Parallel()
	s := startCaddy(t, byQuery(memory))
	client := newClient(t, "")
	s.admitted(client, 3, "/?k=a")
	broken := strings.Replace(byQuery(memory), "odd / zone", "never", 1)
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
				s.mustLoad(strings.Replace(byQuery(memory), "respond ok", "respond ok"+strings.Repeat("k", i), 1))
			}
		}
	})
	asked := 0
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
	}
	group.Wait()
	var k keyState
	s.ask(oddZone+"/key?key=a", &k)
	var zone struct {
		Totals map[string]uint64 `json:"totals"`
	}
	s.ask(oddZone, &zone)
	if k.Used != 2 || zone.Totals["allowed"] != 2 || zone.Totals["refused"] != 1 {
		t.Errorf("after %d looks: %+v, totals %v", asked, k, zone.Totals)
	}
	s.mustLoad(caddyfile("", "respond none"))
	if _, err := s.admin("GET", oddZone, "", ""); err == nil || !strings.Contains(err.Error(), "has no zones") {
		t.Errorf("a zone that is gone: %v", err)
	}
}

// TestAdminWhileRedisIsDown: it says so, and why, and what requests get meanwhile.
func TestAdminWhileRedisIsDown(t *testing.T) {
	t.Parallel()
	redisServer := redistest.Start(t)
	s := startCaddy(t, byQuery("store redis {\naddress "+redisServer.Addr()+"\npassword {$SECRET}\n}\non_store_error local"), "SECRET=s3cr3t-hunter2")
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
	for _, want := range []string{"503", redisServer.Addr(), "does not answer", "each Caddy counts for itself"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Redis is down: %v, want %q", err, want)
		}
	}
	if _, err := s.admin("DELETE", oddZone+"/key?key=a", "", ""); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("resetting while Redis is down: %v", err)
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
