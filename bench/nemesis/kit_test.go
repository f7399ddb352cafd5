package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// outcome runs a case against two instances that share a limiter, behind real HTTP. Its window outlasts the test, so what is found
// does not depend on the machine's speed. A hook kills nothing, but notes that it was called.
func outcome(t *testing.T, l *limiter) verdict {
	t.Helper()
	up, err := startUpstream("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer up.Close()
	dir := t.TempDir()
	program := filepath.Join(dir, "hook")
	const script = "#!/bin/sh\n[ \"$NEMESIS_UPSTREAM\" ] && echo \"$*\" >>\"${0%/*}/calls\"\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	cases, err := parseCases("it | sliding | 1ms kill it; 2ms start it", 10, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	l.limit, l.window = 10, time.Hour
	offered := load{
		urls: []string{l.serve(t, up.address), l.serve(t, up.address)}, clients: 2, limit: 10, window: time.Second,
		below: 0.5, above: 3, volley: 5, time: time.Second, timeout: 20 * time.Second,
	}
	begin := time.Now()
	requests := offered.offer(t.Context(), begin, up)
	settled, err := hook{program, up.address}.inflict(t.Context(), begin, cases[0].faults)
	if err != nil {
		t.Fatal(err)
	}
	if calls, err := os.ReadFile(filepath.Join(dir, "calls")); err != nil || string(calls) != "kill it\nstart it\n" {
		t.Fatalf("the hook was called with %q: %v", calls, err)
	}
	v := judge(requests, cases[0].promise, settled)
	if want := len(offered.schedule()); v.offered != want || v.admitted+v.refused+v.failed != want {
		t.Errorf("offered %d: %+v", want, v)
	}
	return v
}

// TestKit: over HTTP, an exact limiter passes, and one that leaks, is too strict or is broken does not.
func TestKit(t *testing.T) {
	if v := outcome(t, &limiter{}); v.beyond+v.causeless+v.failed+v.left.less+v.left.more > 0 || v.most != 10 || v.refused != 20 {
		t.Errorf("exact: %+v", v)
	}
	if v := outcome(t, &limiter{leakEach: 2}); v.beyond != 10 || v.most != 20 || v.causeless+v.failed > 0 {
		t.Errorf("leaks: %+v", v)
	}
	if v := outcome(t, &limiter{strictEach: 1}); v.causeless != v.offered {
		t.Errorf("too strict: %+v", v)
	}
	if v := outcome(t, &limiter{broken: true}); v.failed != v.offered || v.unavailable == 0 {
		t.Errorf("broken: %+v", v)
	}
}

// TestCases: what a file of cases may say, and the table's line.
func TestCases(t *testing.T) {
	c, err := parseCases("# comment\n\nit | bucket | 1s kill it; 2s start it", 10, time.Second)
	if err != nil || len(c) != 1 || len(c[0].faults) != 2 || c[0].faults[1].action[0] != "start" {
		t.Fatal(c, err)
	}
	if text := markdown("about", []row{{c[0], verdict{}}}); !strings.Contains(text, "| `it` | bucket | 0 |") {
		t.Error(text)
	}
	for _, wrong := range []string{"a | sliding", "a | guess |", "a | sliding | soon kill it", "a | sliding | 1s"} {
		if _, err := parseCases(wrong, 10, time.Second); err == nil {
			t.Errorf("%q was accepted", wrong)
		}
	}
}
