package replay_test

import (
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
						About: replay.About(map[int]int64{200: 41_109, 404: 1}, []string{"logged in", "cookie", "several agents"}, true),
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
