package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// TestSilentCaddy: a Caddy that hangs is named, and does not hide the answers of those behind it.
func TestSilentCaddy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []*instance
		for _, address := range []string{"a", "hangs", "fails", "b"} {
			all = append(all, &instance{screen: new(screen), address: address})
		}
		end := make(chan struct{})
		defer close(end)
		var out strings.Builder
		began := time.Now()
		err := onEach(&screen{out: &out}, all, func(c *instance) error {
			switch c.address {
			case "fails":
				return errors.New("no such zone")
			case "hangs":
				<-end
			}
			text := "yes"
			if c.address == "b" {
				text += "\nand more"
			}
			_, err := fmt.Fprintln(c.out, text)
			return err
		})
		const want = "2 of 4 instances failed:\n  hangs: no answer within 20s\n  fails: no such zone"
		if err == nil || err.Error() != want || time.Since(began) != maxSilence {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		const text = "caddy a\n\nyes\n\ncaddy hangs\n\nno answer\n\ncaddy fails\n\nno answer\n\ncaddy b\n\nyes\nand more\n\n"
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
