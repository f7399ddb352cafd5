package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test's own binary be a process of a fleet.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == workerName {
		if err := runWorker(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	m.Run()
}

// TestFleet makes a short run with two processes. Each cell has a figure, and each claim a ratio.
func TestFleet(t *testing.T) {
	r := server(t)
	p := &fleetPlan{
		processes: []int{1, 2}, goroutines: []int{1, 4, 16}, distributions: []string{uniform, zipf, hot},
		clients: 100, rounds: 1, time: 100 * time.Millisecond, lendWarm: 20 * time.Millisecond, lendTime: 100 * time.Millisecond, progress: t.Output(),
	}
	for _, peer := range fleetPeers() {
		p.peers = append(p.peers, peer.name)
	}
	results, err := p.run(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	beside := 2 * 3 // this store in turns with the one that lends
	if want := len(p.peers)*2*3*3 + beside; len(results.rounds) != want {
		t.Errorf("%d cells, want %d", len(results.rounds), want)
	}
	text := results.markdown("here", p)
	bounds := slices.DeleteFunc(fleetBounds(), func(b fleetBound) bool { return b.distribution != "" }) // of 16 processes
	for _, cell := range []string{"| 2 × 16 |", "with lend 100ms, of those without:\n\n| processes × requests | uniform | Zipf(1.1) | one hot key |"} {
		if !strings.Contains(text, cell) {
			t.Errorf("there is no %q", cell)
		}
	}
	if strings.Contains(text, "NaN") || strings.Count(text, "| at ") != len(bounds) {
		t.Error(text)
	}
	t.Log(text)
}
