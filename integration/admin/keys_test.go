//go:build deep

package admin_test

import (
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

const (
	oddZone = "/rate_limit/zones/odd%20%2F%20zone"
	zones   = "/rate_limit/zones?zone=odd%20%2F%20zone"
)

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
	var shown []struct {
		Totals map[string]uint64 `json:"totals"`
	}
	s.Ask(zones, &shown)
	if got := shown[0].Totals; k.Used != 2 || got["allowed"] != totals["200"] || got["limited"]+got["banned"] != totals["429"] {
		t.Errorf("after %d looks: %+v, totals %v", asked, k, got)
	}
	s.MustLoad(harness.Caddyfile("", "respond none"))
	if _, err := s.Admin("GET", zones, "", ""); err == nil || !strings.Contains(err.Error(), "has no zones") {
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
	if len(all) != 1 || all[0].Answers == nil || *all[0].Answers || all[0].Error == "" || all[0].Name != "redis "+redisServer.Addr() {
		t.Errorf("%+v", all)
	}
	text, err := s.Admin("GET", "/rate_limit/stores", "", "")
	if err != nil || strings.Contains(text, "hunter2") {
		t.Errorf("%v %s", err, text)
	}
}
