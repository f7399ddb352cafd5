package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// TestWatchColumns: decisions are below their headers, a wide cell shifts only the next ones, and a
// narrow terminal cuts only the end of a line.
func TestWatchColumns(t *testing.T) {
	for _, c := range []struct {
		width   int
		several bool
		request string
	}{
		{0, false, "127.0.0.1 GET example.com /" + strings.Repeat("long/", 20)},
		{0, true, "127.0.0.1 GET example.com /"},
		{80, false, "GET /lo"},
		{80, true, ""},
		{120, true, "GET /lo"},
	} {
		l := newDecisionLayout(&screen{width: c.width}, c.several)
		var out strings.Builder
		print := func(cells []string) {
			if err := l.print(&out, cells); err != nil {
				t.Fatal(err)
			}
		}
		print(l.header())
		for _, key := range []string{"203.0.113.7", strings.Repeat("x", 25), "203.0.113.8"} {
			print(l.cells("10.0.0.1:2019", &adminapi.Decision{
				Zone: "api", KeyText: adminapi.KeyText{Key: key}, Outcome: "limited", ClientIP: "127.0.0.1", Method: "GET", Host: "example.com",
				Path: "/" + strings.Repeat("long/", 20), Decision: &adminapi.QuotaStatus{Quota: 100, RetryAfter: 12.34},
			}))
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		for _, line := range lines {
			if n := utf8.RuneCountInString(line); c.width > 0 && n > c.width {
				t.Errorf("%d columns: %s", n, line)
			}
		}
		for header, cell := range map[string]string{"OUTCOME": "limited", "ZONE": "api", "KEY": "203.0.113.", "LEFT": "0/100", "WAIT": "12.", "REQUEST": c.request} {
			if cell == "" {
				continue // no room
			}
			if at := strings.Index(lines[0], header); at < 0 || !strings.HasPrefix(lines[1][at:], cell) || !strings.HasPrefix(lines[3][at:], cell) {
				t.Errorf("%s does not stand above %s:\n%s", header, cell, out.String())
			}
		}
		if strings.Contains(lines[0], "CADDY") != c.several {
			t.Errorf("the header is %s", lines[0])
		}
	}
}

// TestSilentCaddy: a Caddy that hangs is named, and does not hide the answers of those behind it.
func TestSilentCaddy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []*fleet
		for _, address := range []string{"a", "hangs", "fails", "b"} {
			s := new(screen)
			all = append(all, &fleet{screen: s, asked: &endpoint{screen: s, address: address}})
		}
		end := make(chan struct{})
		defer close(end)
		var out strings.Builder
		began := time.Now()
		err := onEach(&screen{out: &out}, all, func(f *fleet) error {
			switch f.asked.address {
			case "fails":
				return errors.New("no such zone")
			case "hangs":
				<-end
			}
			text := "yes"
			if f.asked.address == "b" {
				text += "\nand more"
			}
			_, err := fmt.Fprintln(f.out, text)
			return err
		})
		const want = "2 of 4 instances failed:\n  hangs: no answer within 20s\n  fails: no such zone"
		if err == nil || err.Error() != want || time.Since(began) != maxSilence {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		const text = "caddy a: yes\ncaddy hangs: no answer\ncaddy fails: no answer\n\ncaddy b\n\nyes\nand more\n"
		if out.String() != text {
			t.Errorf("got\n%swant\n%s", out.String(), text)
		}
	})
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
