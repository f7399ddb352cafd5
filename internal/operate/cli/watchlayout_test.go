package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

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
