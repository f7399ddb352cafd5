package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// TestReplayOfARunningCaddy: the replay of the log that a Caddy has just written refuses as many requests
// in each zone as that Caddy did. The windows are long, so that the speed of this machine does not matter;
// TestReplayAgainstTruth compares everything else, one by one.
func TestReplayOfARunningCaddy(t *testing.T) {
	t.Parallel()
	const each = 12
	limits := map[string]string{
		"log": "sliding_window_log 5/1h", "counter": "sliding_window_counter 6/1h", "bucket": "token_bucket 7/100h",
		"meter": "leaky_bucket 8/100h", "fixed": "fixed_window 9/365d",
	}
	zones := ""
	for name, l := range limits {
		zones += fmt.Sprintf("zone %s {\nmatch path /%s\nkey {header.X-Client}\nalgorithm %s\n}\n", name, name, l)
	}
	s := harness.StartCaddy(t, harness.Caddyfile("", "log {\noutput file access.log\n}\nrate_limit {\n"+zones+harness.Memory+"\n}\nrespond ok"))
	refused, client := make(map[string]int64), harness.NewClient(t, "")
	for name := range limits {
		refused[name] = each - int64(s.Admitted(client, each, "/"+name, "X-Client", "a"))
	}
	log := filepath.Join(s.Dir, "access.log")
	patient.Until(t, "the access log to be written", func() bool {
		text, err := os.ReadFile(log)
		return err == nil && strings.Count(string(text), "\n") == each*len(limits)
	})
	var result struct {
		Unknown []json.RawMessage
		Zones   []struct {
			Name              string
			Requests, Refused int64
		}
	}
	output := replayIn(t, s.Dir, []string{"rate-limit", "replay", "--json", log})
	if err := json.Unmarshal([]byte(output), &result); err != nil {
		t.Fatal(err)
	}
	for _, z := range result.Zones {
		if z.Requests != each || z.Refused != refused[z.Name] || z.Refused == 0 {
			t.Errorf("zone %s: %d of %d requests refused, want %d of %d", z.Name, z.Refused, z.Requests, refused[z.Name], each)
		}
	}
	if len(result.Zones) != len(limits) {
		t.Errorf("%d zones, want %d:\n%s", len(result.Zones), len(limits), output)
	}
}
