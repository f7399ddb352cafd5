package main

import (
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	const noise = "Running 1s test @ http://127.0.0.1:1/\n  2 threads and 32 connections\n"
	got, err := parse(noise + "summary requests=1000 us=2000000 p50=640 p99=1200 failed=0 status=3\n")
	want := run{requests: 1000, perSecond: 500, p50: 640 * time.Microsecond, p99: 1200 * time.Microsecond, refused: 3}
	if err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, bad := range []string{
		noise,
		"summary requests=1000 us=2000000 p50=640 p99=1200 failed=1 status=0\n",
		"summary requests=0 us=2000000 p50=0 p99=0 failed=0 status=0\n",
	} {
		if _, err := parse(bad); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}
