package caddyratelimit_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/admin"
	"github.com/seed-161337e5/caddyratelimit/internal/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// measuredLog writes an access log of requests that take up to 4 s, so that many run at the same time.
func measuredLog(t *testing.T) (file string) {
	t.Helper()
	random := rand.New(rand.NewPCG(7, 0))
	var log strings.Builder
	for i := range 400 {
		client := fmt.Sprintf("192.0.2.%d", random.IntN(4))
		fmt.Fprintf(&log, `{"level":"info","ts":%.3f,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"%[2]s","client_ip":"%[2]s",`+
			`"proto":"HTTP/1.1","method":"GET","host":"example.com","uri":"/%d","headers":{}},"bytes_read":0,"user_id":"","duration":%.3f,"size":%d,"status":%d,"resp_headers":{}}`+"\n",
			1795600000+float64(i)*0.7, client, i%3, random.Float64()*4, random.IntN(5000), 200+random.IntN(2)*4)
	}
	file = filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(file, []byte(log.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestCompareMeasured: for zones whose requests cost the time or the bytes of their responses, a diff of two configs counts
// as refused what a replay of each of them does, in total and at each time.
func TestCompareMeasured(t *testing.T) {
	o := replay.Options{Logs: []string{measuredLog(t)}, Format: "auto"}
	const by = "key {client_ip}\nalgorithm fixed_window\n"
	for _, pair := range [][2]string{
		{by + "rate 20000/1m\ncost_measured bytes", by + "rate 10000/1m\ncost_measured bytes"},
		{by + "rate 15000/1m\ncost_measured response_time", by + "rate 15000/1m\ncost_measured response_time {\nup_to 1500\nfirst 100\n}"},
		{by + "rate 15/1m\ncost_measured response_time /1000", by + "rate 15/1m"},
		{by + "rate 15/1m\ncost_measured bytes /1024", by + "rate 15/1m\ncost_measured bytes /1024\ncharge on_response {\nstatus 204\n}"},
		{"key {client_ip}\nalgorithm token_bucket 200/1s\nburst 9000\ncost_measured upstream_time", "key {client_ip}\nalgorithm sliding_window_log\nrate 9000/1m\ncost_measured bytes"},
	} {
		d := compared(t, oneZone(pair[0]), oneZone(pair[1]), &o)
		over := [2][]int64{d.Log.WasOver, d.Log.IsOver}
		for i, got := range []int64{d.Log.Was, d.Log.Is} {
			config, _, err := caddytest.Adapt(oneZone(pair[i]))
			if err != nil {
				t.Fatal(err)
			}
			r, err := admin.AdminAPI{}.Replay(config, &o)
			if err != nil {
				t.Fatal(err)
			}
			want, sum := r.Zones[0].Refused, int64(0)
			for _, n := range over[i] {
				sum += n
			}
			if got != want || sum != want || want == 0 || want == 400 || d.Log.Requests != r.Requests {
				t.Errorf("diff counts %d refusals of %d requests, %d over time, replay %d of %d:\n%s", got, d.Log.Requests, sum, want, r.Requests, pair[i])
			}
		}
	}
}

// TestCompareMeasuredOptions: cost_measured that says the same in other words is no change. What differs is shown.
func TestCompareMeasuredOptions(t *testing.T) {
	const base = "key {client_ip}\nrate 100/1m\n"
	for change, want := range map[string]string{
		"cost_measured bytes -> cost_measured bytes /1":               "",
		"cost_measured bytes -> cost_measured bytes {\nup_to 5000\n}": `cost_measured now {"of":"bytes","per":1,"up_to":5000}, was {"of":"bytes","per":1,"up_to":1000000000000}`,
		"-> cost_measured response_time /1000 {\nup_to 9\n}":          `cost_measured now {"of":"response_time","per":1000,"up_to":9}`,
		"cost_measured response_time /1000 {\nup_to 9\n} ->":          `no cost_measured any longer, was {"of":"response_time","per":1000,"up_to":9}`,
	} {
		before, after, _ := strings.Cut(change, "->")
		got := ""
		if d := compared(t, oneZone(base+before), oneZone(base+after), nil); len(d.Zones) == 1 {
			for _, c := range d.Zones[0].Changes {
				got += c.Text
			}
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", change, got, want)
		}
	}
}
