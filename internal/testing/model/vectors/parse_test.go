package vectors_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/model/vectors"
)

const (
	first = "# algorithms/token_bucket.go and lua/token_bucket.lua\n"
	begin = first + "algorithm token_bucket\nscenario s\nlimit events=3 window=1s\n"
)

// TestParseErrors: a line that is not exactly as Update would write it is an error.
func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "the first line must be",
		"# token_bucket\n":       "the first line must be",
		first:                    "no scenario",
		first + "scenario s":     "there must be an algorithm first",
		first + "algorithm none": `unknown algorithm "none"`,
		first + "algorithm token_bucket\nalgorithm token_bucket":                        "there is an algorithm already",
		first + "algorithm token_bucket\n0 1 -> yes 0 0 0 0 0":                          "there must be a scenario first",
		first + "algorithm token_bucket\nscenario s\n0 1 -> yes 0 0 0 0 0":              "there must be a limit first",
		first + "algorithm token_bucket\nscenario s\nlimit events=-1":                   "must be a number of at least 0, got -1",
		first + "algorithm token_bucket\nscenario s\nlimit events=1":                    "window must be at least 1ms",
		first + "algorithm token_bucket\nscenario s\nlimit evens=1":                     "evens: unknown option",
		first + "algorithm token_bucket\nscenario s\nlimit events=1 events=2 window=1s": "each option once, got events=2",
		begin + "0  1 -> yes 0 0 0 0 0":                                                 "one space",
		begin + "0 1 -> yes 0 0 0 0 0 ":                                                 "one space",
		begin + "0 1":                                                                   "must be: at cost",
		begin + "0 1 a b -> yes 0 0 0 0 0":                                              "must be a cost and a name",
		begin + "0 01 -> yes 0 0 0 0 0":                                                 "must be a number of at least 0, got 01",
		begin + "0 -1 -> yes 0 0 0 0 0":                                                 "must be a number of at least 0, got -1",
		begin + "0 1 -> yes 0 0 0 0":                                                    "a decision has six words, got 5",
		begin + "0 1 -> maybe 0 0 0 0 0":                                                "must be yes or no, got maybe",
		begin + "0 1 -> yes 0 0s 0 0 0":                                                 "written 0, got 0s",
		begin + "0 1 -> yes 0 60s 0 0 0":                                                "written 1m, got 60s",
		begin + "0 1 -> yes 0 1500ns 0 0 0":                                             "in whole microseconds, written 1µs, got 1500ns",
		begin + "1 1 -> yes 0 0 0 0 0":                                                  "missing unit",
		begin + "0 1 a -> yes 0 0 0 0 0\n0 1 a -> yes 0 0 0 0 0":                        "the name is taken",
		begin + "0 adjust -1 a":                                                         "there was no charge under that name",
		begin + "0 adjust -1":                                                           "must be a delta and a name",
		begin + "0 1 a -> yes 0 0 0 0 0\n0 adjust +1 a":                                 "must be written 1, got +1",
		begin + "0 renew 1":                                                             "must be a cost and a name",
		begin + "beyond reason":                                                         "must be: beyond model",
		begin + "0 1 -> yes 0 0 0 0 0\nfrom 2026-11-18T15:00:00Z":                       "from must come before the first step",
		first + "algorithm token_bucket\nscenario s\nfrom 2026-11-18T15:00:00.50Z":      "must be written 2026-11-18T15:00:00.5Z",
	} {
		if _, err := vectors.Parse("file", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q:\ngot  %v\nwant %s", strings.TrimPrefix(text, first), err, want)
		}
	}
}

// TestUpdate: decisions are written after the arrows, and the rest stays the same.
func TestUpdate(t *testing.T) {
	before := begin + "# why\n\n1s 2 a -> yes 0 0 0 0 0\n2s adjust -2 a\n1.5s 0 -> no 1 never 0 0 0\n"
	f, err := vectors.Parse("file", before)
	if err != nil {
		t.Fatal(err)
	}
	got := f.Update(func() vectors.Key { return new(counting) })
	want := begin + "# why\n\n1s 2 a -> no 1 never 0 0 0\n2s adjust -2 a\n1.5s 0 -> no 3 never 0 0 0\n"
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	step := f.Scenarios[0].Steps[1]
	if taken := vectors.Start.Add(time.Second).UnixMicro(); step.Do != vectors.Adjust || step.Cost != -2 || step.Taken != taken {
		t.Errorf("second step: %+v", step)
	}
}

// counting is a key that counts its steps.
type counting struct{ n int64 }

func (c *counting) Take(algorithms.Limit, int64, int64, string) algorithms.Decision {
	c.n++
	return algorithms.Decision{Remaining: c.n, RetryAfter: algorithms.Never}
}

func (c *counting) Renew(algorithms.Limit, int64, int64, string) { c.n++ }

func (c *counting) Adjust(algorithms.Limit, int64, int64, int64, string) { c.n++ }
