package browser

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/golden"
)

// TestCurl: what each caller gets on the wire.
func TestCurl(t *testing.T) {
	t.Parallel()
	s := startCaddy(t, "", `
		rate_limit {
			zone quota {
				match header Zone quota
				events 0
				window 12s
			}
			zone flood {
				match header Zone flood
				events  0
				window  12s
				headers off
			}
			on_limit problem
		}
		rate_limit {
			zone bare {
				events 0
				window 12s
			}
		}
		respond ok`)
	var told strings.Builder
	for _, arguments := range []string{
		"-H Zone:bare",
		"-H Zone:quota",
		"-H Zone:flood",
		"-I -H Zone:quota",
		"-0 -H Zone:quota",
		"-d x -H Content-Type:application/grpc",
	} {
		output, err := exec.Command("curl", append([]string{"-si", "--max-time", "60", "http://" + s.site}, strings.Fields(arguments)...)...).Output()
		if err != nil {
			t.Fatalf("curl %s: %v", arguments, err)
		}
		fmt.Fprintf(&told, "$ curl %s\n", arguments)
		for line := range strings.Lines(string(output)) {
			if line = strings.TrimRight(line, "\r\n"); !strings.HasPrefix(line, "Date: ") {
				fmt.Fprintln(&told, line)
			}
		}
		fmt.Fprintln(&told)
	}
	golden.Open(t, "testdata/answers.txtar", "curl").Check(t, told.String())
}
