package replay_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/golden"
)

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, "2026-11-20T"+text+"Z")
	if err != nil {
		panic(err)
	}
	return t
}

// report is a result that has everything.
func report() *replay.Result {
	first := at("02:14:07")
	return &replay.Result{
		Unknown: []string{
			"zone api, key: header Authorization, which is redacted (51,204 requests); all its values count as one",
			"zone api, cost: {http.request.body}; treated as empty",
			"handler forward_auth; assumed that it passes the request on unchanged",
		},
		Config: "Caddyfile", Logs: []replay.Log{{Name: "access.log"}, {Name: "access.log.1.gz"}}, Lines: 3_412_130, NotUnderstood: 12,
		FirstBad: []string{"access.log:88121: no client address: {\"ts\":\x1b[31m"}, NoRequests: 3,
		Requests: 3_412_118, Clients: 41_207, From: at("00:00:00"), To: at("23:59:59"), Took: 2100 * time.Millisecond,
		Zones: []*replay.Zone{
			{Name: "api", Limit: "concurrency 10", Key: "{header.Authorization}", Requests: 51_204, Keys: 1, Outcomes: map[string]int64{"allowed": 51_204}},
			{
				Name: "clients", Limit: "sliding_window_log 100/1m", Key: "{client_ip}", Events: 100, Window: 60, Length: "1m", DryRun: true,
				Requests: 3_398_004, Keys: 41_207, Refused: 21_440, KeysRefused: 38, FirstRefused: &first,
				Outcomes: map[string]int64{"allowed": 3_376_554, "dry_run": 21_440, "exempt": 10, "not_charged": 582},
				Busiest:  &replay.Peak{Key: "198.51.100.7", Used: 97},
				Top: []*replay.Key{
					{Key: "203.0.113.7", Requests: 14_533, Refused: 12_804, FirstRefused: first, About: replay.About(map[int]int64{200: 12_292, 404: 512}, nil, false), Agent: "python-requests/2.32"},
					{
						Key: "192.0.2.14 /\x1b[31mlogin\n", Requests: 34_250, Refused: 4_110, FirstRefused: at("09:00:02"), Agent: strings.Repeat("Mozilla/5.0 ", 10),
						About: replay.About(map[int]int64{200: 4_110}, []string{"logged in", "cookie", "several agents"}, true),
					},
				},
				WhatIf: []replay.WhatIf{
					{Limit: "50/1m", Refused: 61_220, KeysRefused: 412},
					{Limit: "100/1m", Refused: 21_440, KeysRefused: 38, Configured: true},
					{Limit: "200/1m", Refused: 18_020, KeysRefused: 4, Suggested: true},
				},
				Suggestion: &replay.Suggestion{Limit: "200/1m", Reasons: []string{"99 % of the 41,207 clients used at most 61/1m", strings.Repeat("because of a reason that is long ", 4)}},
			},
		},
	}
}

// TestGoldenReport: what the report of a replay looks like, in 80 columns.
func TestGoldenReport(t *testing.T) {
	var b strings.Builder
	if err := report().WriteText(&b, time.UTC); err != nil {
		t.Fatal(err)
	}
	b.WriteString("\n")
	if err := new(replay.Result).WriteText(&b, time.UTC); err != nil {
		t.Fatal(err)
	}
	golden.Open(t, "testdata/report.txtar", "report").Check(t, b.String())
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > replay.Width {
			t.Errorf("a line of %d columns: %s", n, line)
		}
		if strings.TrimRight(line, " \n") != strings.TrimRight(line, "\n") || strings.Contains(line, "\x1b") {
			t.Errorf("spaces at the end or a control character: %q", line)
		}
	}
}

// clients returns n clients with a peak.
func clients(peak int64, n int, human, shared bool) []replay.Client {
	return slices.Repeat([]replay.Client{{Key: "k", Peak: peak, Human: human, Shared: shared}}, n)
}

// TestSizes: the limit is above nearly all clients, twice above 99 % of them, and above each that looks
// like several people.
func TestSizes(t *testing.T) {
	for _, c := range []struct {
		name string
		all  [][]replay.Client
		want replay.Sizes
	}{
		{"nobody", nil, replay.Sizes{Limit: 1, Reference: 1}},
		{"one", [][]replay.Client{clients(7, 1, false, false)}, replay.Sizes{Clients: 1, Median: 7, P99: 7, Limit: 15, Reference: 7}},
		{
			"a scraper",
			[][]replay.Client{clients(10, 990, true, false), clients(20, 9, true, false), clients(5000, 1, false, false)},
			replay.Sizes{Clients: 1000, Median: 10, P99: 10, People: 999, PeopleMost: 20, Limit: 20, Reference: 10, Above: 1, Highest: []string{"k"}},
		},
		{
			"busy people",
			[][]replay.Client{clients(10, 1990, false, false), clients(61, 10, true, false)},
			replay.Sizes{Clients: 2000, Median: 10, P99: 10, People: 10, PeopleMost: 61, Limit: 80, Reference: 10},
		},
		{
			"an office among many people",
			[][]replay.Client{clients(10, 1998, true, false), clients(61, 1, true, true), clients(5000, 1, false, false)},
			replay.Sizes{Clients: 2000, Median: 10, P99: 10, People: 1999, Shared: 1, PeopleMost: 61, Limit: 80, Reference: 10, Above: 1, Highest: []string{"k"}},
		},
	} {
		if got := replay.SizesOf(slices.Concat(c.all...)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestSuggest: a limit that some clients are above is suggested, and names them.
func TestSuggest(t *testing.T) {
	s := replay.Sizes{Clients: 1000, P99: 10, People: 999, PeopleMost: 20, Limit: 20, Reference: 10, Highest: []string{"203.0.113.7"}}
	for above, want := range []string{"", "20/1m"} {
		s.Above = above
		got := s.Suggest("/1m")
		look := strings.Contains(strings.Join(got.Reasons, "; "), "look at who is above it: 203.0.113.7")
		if got.Limit != want || look != (want != "") || (want == "") != (got.Failure == "no client has used more than 20/1m") {
			t.Errorf("%d above: %+v, want %q, and then who to look at", above, got, want)
		}
	}
	few := replay.SizesOf(slices.Concat(clients(3, 50, false, false), clients(70, 49, false, false)))
	const want = "of the 99 clients, half used at most 3/1m, and nobody more than 70/1m"
	if got := few.Suggest("/1m"); got.Failure != "too few clients to tell" || strings.Join(got.Reasons, "; ") != want {
		t.Errorf("of 99 clients: %+v, want %s", got, want)
	}
}

// TestRound: limits are round numbers.
func TestRound(t *testing.T) {
	var got []int64
	for n := int64(0); n < 300; n = got[len(got)-1] + 1 {
		got = append(got, replay.Round(n))
	}
	want := []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60, 80, 100, 150, 200, 250, 300}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
