package respond_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
)

// loadAtNoon loads a handler, and returns the clock of its store, which begins at noon.
func loadAtNoon(t *testing.T, limits string) (caddytest.Handler, *int64) {
	t.Helper()
	now := new(int64)
	*now = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC).UnixMicro()
	kept := caddytest.KeepMemory(t, memorystore.Options{Now: func() int64 { return *now }})
	return caddytest.Load(t, `{`+kept.Option()+`"log": "off", "rate_limits": `+limits+`}`), now
}

// promise is what a response says about later requests.
type promise struct {
	admitted    bool
	left        int64 // parameter r
	next, retry int64 // parameter t and Retry-After, in seconds
}

// readPromise reads the header with a parser from another project.
func readPromise(t *testing.T, status int, header http.Header) (p promise) {
	t.Helper()
	list, err := httpsfv.UnmarshalList(header.Values("RateLimit"))
	if err != nil || len(list) != 1 {
		t.Fatalf("RateLimit %q: %v", header.Values("RateLimit"), err)
	}
	params := list[0].(httpsfv.Item).Params
	left, _ := params.Get("r")
	next, _ := params.Get("t")
	p.left, _ = left.(int64)
	p.next, _ = next.(int64)
	p.retry, _ = strconv.ParseInt(header.Get("Retry-After"), 10, 64)
	p.admitted = status == http.StatusOK
	return p
}

// TestPromisesAreKept: in thousands of responses of all algorithms, a client that waits for
// Retry-After is admitted, and one that comes a second earlier is not. It has as many requests left
// as RateLimit says, no more and no less.
func TestPromisesAreKept(t *testing.T) {
	const seed, each = 6, 300
	responses := 0
	for i, limit := range []string{
		`"algorithm": "sliding_window_log", "max_events": 5, "window": "13s"`,
		`"algorithm": "sliding_window_counter", "max_events": 7, "window": "30s"`,
		`"algorithm": "token_bucket", "max_events": 5, "window": "33s"`,
		`"algorithm": "token_bucket", "max_events": 1, "window": "7s", "burst": 4`,
		`"algorithm": "token_bucket", "max_events": 4, "window": "20s", "refill": "interval"`,
		`"algorithm": "gcra", "max_events": 3, "window": "10s"`,
		`"algorithm": "leaky_bucket", "max_events": 3, "window": "25s", "burst": 6`,
		`"algorithm": "fixed_window", "max_events": 5, "window": "20s"`,
		`"algorithm": "fixed_window", "max_events": 5, "window": "20s", "align": "first_request"`,
		`"algorithm": "fixed_window", "max_events": 9, "window": "day", "timezone": "Asia/Kathmandu"`,
	} {
		h, now := loadAtNoon(t, fmt.Sprintf(`{"promises %d": {%s}}`, i, limit))
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		times := make(map[string]int)
		request := func(after time.Duration) promise {
			*now += after.Microseconds()
			status, header := caddytest.Serve(t, h, "203.0.113.7:1")
			responses++
			return readPromise(t, status, header)
		}
		p := request(0)
		for range each {
			before := p
			what, seconds := "at any time", 0.0
			switch {
			case !before.admitted && before.retry > 1 && random.IntN(2) == 0:
				what, seconds = "a second too early", float64(before.retry-1)
			case !before.admitted:
				what, seconds = "after Retry-After", float64(before.retry)
			case random.IntN(3) > 0:
				what = "at once"
			case before.next > 1 && random.IntN(2) == 0:
				what, seconds = "a second before there is more", float64(before.next-1)
			case random.IntN(2) == 0:
				what, seconds = "when there is more", float64(before.next)
			default:
				seconds = random.Float64() * 40
			}
			times[what]++
			p = request(time.Duration(seconds * float64(time.Second)))
			kept := true
			switch what {
			case "a second too early":
				kept = !p.admitted && p.retry == 1
			case "after Retry-After":
				kept = p.admitted
			case "at once", "a second before there is more":
				kept = p.admitted == (before.left > 0) && (!p.admitted || p.left == before.left-1)
			case "when there is more":
				kept = p.admitted && p.left >= before.left
			}
			if !kept || p.next < 1 || p.admitted == (p.retry > 0) || !p.admitted && (p.left != 0 || p.retry < p.next) {
				t.Errorf("%s: the response was %+v, the next request came %s, and its response is %+v", limit, before, what, p)
				break
			}
		}
		for _, what := range []string{"a second too early", "after Retry-After", "at once", "a second before there is more", "when there is more"} {
			if times[what] < 3 && !(strings.Contains(what, "before") && strings.Contains(limit, "1s")) {
				t.Errorf("%s: only %d requests came %s", limit, times[what], what)
			}
		}
	}
	if responses < 1000 {
		t.Errorf("only %d responses", responses)
	}
}
