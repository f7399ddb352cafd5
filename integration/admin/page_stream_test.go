package admin_test

import (
	"bufio"
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// pageEvent is what a test reads of an event of the page.
type pageEvent struct {
	Process  string                                  `json:"process"`
	Address  string                                  `json:"address"`
	Outcomes []string                                `json:"outcomes"`
	Zones    []struct{ Name, Limit, Rollout string } `json:"zones"`
	Totals   map[int][]uint64                        `json:"totals"`
	Refused  []harness.SeenDecision                  `json:"refused"`
	Top      []struct {
		Index int
		Keys  []struct{ Key string }
	} `json:"top"`
	Keys map[int]int64 `json:"keys"`
}

// nextPageEvent reads an event of the page.
func nextPageEvent(t *testing.T, lines *bufio.Scanner) (e pageEvent, ok bool) {
	t.Helper()
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				t.Fatal(err)
			}
			return e, true
		}
	}
	return e, false
}

// TestPageStream: the stream of the page begins with the zones, and then has counts, refused keys and
// refusals in full. A reload ends it, and the page can be switched off.
func TestPageStream(t *testing.T) {
	t.Parallel()
	config := harness.Caddyfile("", `
		rate_limit {
			zone clients {
				key {query.k}
				events 2
				window 1h
			}
			zone planned {
				match path /planned
				plan {query.plan} {
					free 1/1h
					pro  unlimited
					default free
				}
				dry_run
			}
		}
		respond ok`)
	s := harness.StartCaddy(t, config)
	client := harness.NewClient(t, "")
	lines := bufio.NewScanner(s.Events("page/stream?rate=5"))
	lines.Buffer(nil, 1<<20)
	start, _ := nextPageEvent(t, lines)
	if len(start.Zones) != 2 || start.Zones[0].Name != "clients" || start.Zones[1].Rollout != "dry run" || start.Process == "" || !strings.HasPrefix(start.Address, "unix/") {
		t.Errorf("the first event is %+v", start)
	}
	first, _ := nextPageEvent(t, lines)
	if len(first.Totals) != 2 || first.Keys[0] != 0 {
		t.Errorf("the second event is %+v", first)
	}
	s.Admitted(client, 5, "/?k=a")
	var refused, top bool
	for !refused || !top {
		e, ok := nextPageEvent(t, lines)
		if !ok {
			t.Fatal("the stream ended")
		}
		for _, d := range e.Refused {
			refused = refused || d.Is("a") && d.Outcome == "limited"
		}
		for _, of := range e.Top {
			top = top || of.Index == 0 && len(of.Keys) == 1 && of.Keys[0].Key == "a"
		}
	}
	s.MustLoad(strings.Replace(config, "{\n", "{\n\trate_limit_page off\n", 1))
	for ok := true; ok; {
		_, ok = nextPageEvent(t, lines)
	}
	for _, path := range []string{"page/", "page/page.js", "page/stream"} {
		if answer, err := s.Admin("GET", "/rate_limit/"+path, "", ""); err == nil || !strings.Contains(err.Error(), "the page is switched off") {
			t.Errorf("%s: %s %v", path, answer, err)
		}
	}
}
