package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/golden"
)

// TestHostileReports: what another program has written to a store as the report of an instance neither moves the cursor of a
// terminal nor forges lines.
func TestHostileReports(t *testing.T) {
	const bad = "a\x1b[2J\nforged"
	stores := []adminapi.Store{{
		Name: bad, Breaker: bad, Error: bad, Zones: []string{bad}, Silent: []adminapi.SilentServer{{Address: bad, Error: bad}},
	}}
	for name, show := range map[string]func(*instance) error{
		"stores": (*instance).stores,
		"watch": func(c *instance) error {
			w := &watcher{instance: c}
			text, err := json.Marshal(&adminapi.Decision{Outcome: bad, Zone: bad, Reason: bad, Method: bad, Path: bad, Host: bad, ClientIP: bad, Plan: bad})
			if err != nil {
				return err
			}
			return w.print(string(text))
		},
	} {
		var out strings.Builder
		c := asking(t, &out, 0, func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(stores)
		})
		c.view = &adminapi.FleetAnswer{Instances: []adminapi.Instance{
			{Name: "me", State: adminapi.StateHere},
			{Name: bad, State: adminapi.StateReports, Differs: []string{bad}},
		}}
		c.printView()
		if err := show(c); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for line := range strings.Lines(out.String()) {
			if strings.HasPrefix(line, "forged") || strings.ContainsFunc(strings.TrimSuffix(line, "\n"), unicode.IsControl) {
				t.Errorf("%s: %q in\n%q", name, line, out.String())
			}
		}
		if !strings.Contains(out.String(), "forged") {
			t.Errorf("%s: nothing is shown: %s", name, out.String())
		}
	}
}

// TestLocal: a moment that comes has the time of this place. One in a note, of long ago, stays as it was written.
func TestLocal(t *testing.T) {
	const before = "note: 'since 2020-01-02T10:00:00Z'"
	comes := time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano)
	got := local("banned until " + comes + ", " + before)
	if !strings.HasSuffix(got, "), "+before) || !strings.Contains(got, " (in ") || strings.Contains(got, comes) {
		t.Error(got)
	}
}

// TestOwnPlan: a key is not said to be refused under a plan that it does not have. If its plan is not known, all count.
func TestOwnPlan(t *testing.T) {
	k := adminapi.Key{Zone: "z", Plans: []adminapi.Key{
		{Plan: "free", Outcome: "limited", Why: "refusing under plan free"},
		{Plan: "pro", Outcome: "allowed"},
	}}
	for plan, want := range map[string]string{"pro": "", "free": "\nrefusing under plan free\n", "": "\nrefusing under plan free\n", "gone": "\nrefusing under plan free\n"} {
		k.Lately = &adminapi.Lately{Plan: plan}
		var out strings.Builder
		if (&screen{out: &out}).printReasons(k); out.String() != want {
			t.Errorf("last plan %q: %q", plan, out.String())
		}
	}
}

// asking returns an instance whose answers come from a handler.
func asking(t *testing.T, out *strings.Builder, width int, answer http.HandlerFunc) *instance {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	s := &screen{out: out, err: out, width: width}
	return &instance{screen: s, address: strings.TrimPrefix(server.URL, "http://")}
}

// TestZoneCosts: the details of a zone have the results of its responses and the sum of their costs.
func TestZoneCosts(t *testing.T) {
	rows := zoneDetails(&adminapi.Zone{Name: "tokens", ZoneCounts: adminapi.ZoneCounts{
		Costs: map[string]uint64{"read": 7, "unknown": 2, "broken_off": 0}, CostSum: 590,
	}})
	if got, want := fmt.Sprint(rows[len(rows)-2:]), "[[costs 7 read, 2 unknown] [cost sum 590]]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestAddressSpellings: an address of the endpoint may be a URL, and have no port.
func TestAddressSpellings(t *testing.T) {
	for text, want := range map[string]string{
		"localhost": "localhost:2019", "localhost:7219": "localhost:7219", "http://localhost:7219/": "localhost:7219", "http://localhost": "localhost:2019",
		"[::1]:80": "[::1]:80", "::1": "[::1]:2019", "[::1]": "[::1]:2019", ":2020": ":2020", "unix//run/caddy/": "unix//run/caddy/", "tcp/localhost:1": "localhost:1",
	} {
		if got, err := cleanAddress(text); got != want || err != nil {
			t.Errorf("%s: got %s, %v, want %s", text, got, err, want)
		}
	}
}

// TestSaysWhatItWaitsFor: a person learns what a command waits for after a second, and a program does not.
func TestSaysWhatItWaitsFor(t *testing.T) {
	for _, c := range []struct {
		takes  time.Duration
		person bool
		want   string
	}{
		{900 * time.Millisecond, true, ""},
		{1100 * time.Millisecond, true, "Waiting for reports ...\n"},
		{1100 * time.Millisecond, false, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			s := new(screen)
			if c.person {
				s.waits = &out
			}
			ended := s.waiting("reports")
			time.Sleep(c.takes)
			synctest.Wait()
			ended()
			if time.Sleep(time.Minute); out.String() != c.want {
				t.Errorf("%+v: %q", c, out.String())
			}
		})
	}
}

// TestSeveralCaddys: what each says is below its address, and one that fails or hangs does not hide those behind it.
func TestSeveralCaddys(t *testing.T) { synctest.Test(t, severalCaddys) }

func severalCaddys(t *testing.T) {
	thawed := make(chan bool)
	defer close(thawed)
	var out strings.Builder
	var all []*instance
	for _, address := range []string{"a", "fails", "hangs", "b"} {
		all = append(all, &instance{screen: &screen{out: &out}, address: address})
	}
	err := onEach(all, func(c *instance) error {
		if c.address == "fails" {
			return errors.New("no such zone")
		}
		if c.address == "hangs" {
			<-thawed
		}
		_, err := fmt.Fprintln(c.out, "yes\nand more")
		return err
	})
	const text = "caddy a\n\nyes\nand more\n\ncaddy fails\n\nno answer\n\ncaddy hangs\n\nno answer\n\ncaddy b\n\nyes\nand more\n\n"
	if want := "2 of 4 instances failed:\n  fails: no such zone\n  hangs: no answer within 20s"; err == nil || err.Error() != want || out.String() != text {
		t.Errorf("%v, got\n%swant\n%s", err, out.String(), text)
	}
}

// TestShortLimit: in a narrow table, the numbers of a limit and whether it is enforced come first.
func TestShortLimit(t *testing.T) {
	for _, c := range []struct {
		zone adminapi.Zone
		want string
	}{
		{adminapi.Zone{Limit: "sliding_window_log 100/1h with overrides"}, "100/1h sliding_window_log with overrides"},
		{adminapi.Zone{Limit: "token_bucket 10/1s burst 50", Rollout: "dry run"}, "10/1s (dry run) token_bucket burst 50"},
		{adminapi.Zone{Limit: "concurrency 5"}, "5 concurrency"},
		{adminapi.Zone{Limit: "plans of {p}, free 1/1s, pro 2/1s", Plans: []string{"free", "pro"}, Rollout: "enforce 50 %"}, "2 plans (enforce 50 %)"},
	} {
		if got := shortLimit(&c.zone); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestGoldenWidths: what the tables show at several widths. Only keys, limits and stores are cut, keys in
// their middle.
func TestGoldenWidths(t *testing.T) {
	yes, keys := true, int64(1_204_117)
	store := adminapi.Store{
		Name: "redis tls://redis.internal.example.com:6380/0", Answers: &yes, Breaker: "closed", Instances: 3, Keys: &keys,
		Latency: &adminapi.Latency{Count: 9, P50: 0.001, P99: 0.05}, Zones: []string{"clients", "logins", "api-by-customer"},
	}
	const key = "2001:db8:85a3:8d3:1319:8a2e:370:7348|/api/v1/orders/export"
	var b strings.Builder
	for _, width := range []int{60, 80, 120, 200} {
		c := &instance{screen: &screen{out: &b, width: width}}
		w := &watcher{instance: c}
		decision, err := json.Marshal(&adminapi.Decision{
			Time: time.Date(2026, 11, 20, 9, 0, 0, 0, time.Local), Zone: "api-by-customer", KeyText: adminapi.NewKeyText(key, len(key)), Outcome: "limited",
			Method: "GET", Path: "/api/v1/orders/export", Decision: &adminapi.QuotaStatus{Quota: 5000, RetryAfter: 12.3},
		})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%d COLUMNS\n", width)
		c.table([][]string{{"STORE", "ANSWERS", "BREAKER", "P50", "P99", "INSTANCES", "KEYS", "ZONES"}, storeCells(&store)})
		c.table([][]string{{"ZONE", "STATE", "USED", "LEFT", "MORE IN", "KEY"}, {"api-by-customer", "limited", "5000 of 5000", "0", "12.3s", key}})
		if err := w.print(string(decision)); err != nil {
			t.Fatal(err)
		}
		b.WriteByte('\n')
	}
	golden.Open(t, "testdata/tables.txtar", "widths").Check(t, b.String())
}

// TestGoldenFleetWidths: what is said of the instances of a fleet at several widths.
func TestGoldenFleetWidths(t *testing.T) {
	view := adminapi.FleetAnswer{Instances: []adminapi.Instance{
		{Name: "limiter-7d9c6b5f4d-x2x7q.example.com (process 3188)", State: adminapi.StateHere},
		{Name: "limiter-7d9c6b5f4d-k8w2z.example.com (process 17)", State: adminapi.StateReports, Differs: []string{"logins"}},
		{Name: "old.example.com (process 3)", State: adminapi.StateMute},
		{Name: "limiter-7d9c6b5f4d-w7f4t.example.com (process 204)", State: adminapi.StateSilent, Age: 31.5},
	}, Notes: []string{"what other instances report by store redis localhost:6379 is not known: no answer"}}
	var b strings.Builder
	for _, width := range []int{60, 80, 200} {
		var out strings.Builder
		(&instance{screen: &screen{out: &out, width: width}, view: &view}).printView()
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%d columns in a terminal of %d: %s", n, width, line)
			}
		}
		fmt.Fprintf(&b, "%d COLUMNS\n%s\n", width, out.String())
	}
	golden.Open(t, "testdata/tables.txtar", "fleets").Check(t, b.String())
}
