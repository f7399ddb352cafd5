package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

//go:embed wrk.lua
var wrkScript string

// wrk is the load generator, with its script in a file.
type wrk struct{ script string }

func newWrk(dir string) (*wrk, error) {
	if _, err := exec.LookPath("wrk"); err != nil {
		return nil, fmt.Errorf("no wrk on PATH (apt-get install wrk): %w", err)
	}
	w := &wrk{script: filepath.Join(dir, "wrk.lua")}
	return w, os.WriteFile(w.script, []byte(wrkScript), 0o600)
}

// run is the result of one run of wrk.
type run struct {
	requests  float64
	perSecond float64
	p50, p99  time.Duration
	refused   float64 // answers other than 2xx and 3xx
}

// against sends requests of a number of clients over a number of connections.
func (w *wrk) against(ctx context.Context, url string, connections, clients int, skewed bool, d time.Duration) (run, error) {
	seconds := max(1, int(d.Seconds()))
	cmd := exec.CommandContext(ctx, "wrk", "-t2", "-c", strconv.Itoa(connections), "-d", strconv.Itoa(seconds)+"s",
		"--timeout", "10s", "-s", w.script, url, "--", keyHeader, strconv.Itoa(clients), strconv.FormatBool(skewed))
	output, err := cmd.CombinedOutput()
	if err != nil {
		return run{}, fmt.Errorf("wrk: %w\n%s", err, output)
	}
	return parse(string(output))
}

func parse(output string) (run, error) {
	for line := range strings.Lines(output) {
		var requests, micros, p50, p99, failed, status float64
		_, err := fmt.Sscanf(line, "summary requests=%g us=%g p50=%g p99=%g failed=%g status=%g",
			&requests, &micros, &p50, &p99, &failed, &status)
		if err != nil {
			continue
		}
		if failed > 0 || requests == 0 {
			return run{}, fmt.Errorf("%.0f of %.0f requests got no answer:\n%s", failed, requests, output)
		}
		return run{
			requests: requests, perSecond: requests / micros * 1e6, refused: status,
			p50: time.Duration(p50) * time.Microsecond, p99: time.Duration(p99) * time.Microsecond,
		}, nil
	}
	return run{}, fmt.Errorf("wrk gave no summary:\n%s", output)
}
