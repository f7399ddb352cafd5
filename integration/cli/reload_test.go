//go:build deep

package cli_test

import (
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

const (
	oddZone = "/rate_limit/zones/odd%20%2F%20zone"
	zones   = "/rate_limit/zones?zone=odd%20%2F%20zone"
)

// TestAdminWhileReloading: during reloads, some of which fail, the admin API knows the zones of the
// running config, and no count is lost.
func TestAdminWhileReloading(t *testing.T) {
	t.Parallel()
	config := byQuery(harness.Memory)
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
	used := s.Spent("odd%20%2F%20zone", "a").Used
	var shown []struct {
		Totals map[string]uint64 `json:"totals"`
	}
	s.Ask(zones, &shown)
	if got := shown[0].Totals; used != 2 || got["allowed"] != totals["200"] || got["limited"]+got["banned"] != totals["429"] {
		t.Errorf("after %d looks: %d used, totals %v", asked, used, got)
	}
	s.MustLoad(harness.Caddyfile("", "respond none"))
	if _, err := s.Admin("GET", zones, "", ""); err == nil || !strings.Contains(err.Error(), "has no zones") {
		t.Errorf("a zone that is gone: %v", err)
	}
}
