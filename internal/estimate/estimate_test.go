package estimate_test

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/seed-161337e5/caddyratelimit/internal/estimate"
)

// TestKinds: paths that differ in numbers, case or slashes are alike, and others are not.
func TestKinds(t *testing.T) {
	of := func(path string) estimate.Kind { return estimate.KindOf("k", "GET", path) }
	for _, same := range [][2]string{
		{"/users/17", "/users/4711"}, {"/users/17", "/USERS//18/"}, {"/a/b/c/d/e", "/a/b/c/d/f"}, {"/x/ab12", "/x/34"}, {"", "/"},
	} {
		if of(same[0]) != of(same[1]) {
			t.Errorf("%s and %s differ", same[0], same[1])
		}
	}
	for _, other := range [][2]string{{"/users/17", "/users"}, {"/users/17", "/user/17"}, {"/a/b", "/ab"}, {"/a", "/b"}} {
		if of(other[0]) == of(other[1]) {
			t.Errorf("%s and %s are alike", other[0], other[1])
		}
	}
	if of("/a") == estimate.KindOf("k", "POST", "/a") || of("/a") == estimate.KindOf("other", "GET", "/a") {
		t.Error("methods or keys are alike")
	}
}

// TestEstimates: the narrowest group that is known decides, and a mean follows what requests cost now.
func TestEstimates(t *testing.T) {
	table := new(estimate.Table)
	want := func(key, path string, cost int64, known bool) {
		t.Helper()
		if got, ok := table.Cost(estimate.KindOf(key, "GET", path)); got != cost || ok != known {
			t.Errorf("%s %s: %d, %v, want %d, %v", key, path, got, ok, cost, known)
		}
	}
	want("a", "/slow", 0, false)
	table.Learn(estimate.KindOf("a", "GET", "/slow"), 1000)
	want("a", "/slow", 1000, true)
	want("b", "/slow", 1000, true) // by the path
	want("a", "/new", 1000, true)  // by the key
	want("b", "/new", 1000, true)  // by all
	for range 100 {
		table.Learn(estimate.KindOf("b", "GET", "/fast"), 10)
	}
	want("a", "/slow", 1000, true)
	want("b", "/slow", 1000, true)
	want("b", "/new", 10, true)
	want("c", "/fast", 10, true)
	for range 100 { // it has become fast, too
		table.Learn(estimate.KindOf("a", "GET", "/slow"), 30)
	}
	if got, _ := table.Cost(estimate.KindOf("a", "GET", "/slow")); got < 30 || got > 35 {
		t.Errorf("%d, want about 30", got)
	}
}

// TestFloodOfPaths: a client with ever new keys and paths takes no more room, and pushes out nobody who keeps coming.
func TestFloodOfPaths(t *testing.T) {
	table := new(estimate.Table)
	good := estimate.KindOf("good", "GET", "/slow")
	pushed := 0
	for i := range 200_000 {
		name := fmt.Sprintf("%c%c%c", 'a'+i%26, 'a'+i/26%26, 'a'+i/26/26%26)
		table.Learn(estimate.KindOf(fmt.Sprint("bad", i), "GET", "/"+name), 1)
		if i%500 == 0 {
			table.Learn(good, 1000)
			if cost, _ := table.Cost(good); cost < 900 {
				pushed++
			}
		}
	}
	if pushed > 20 {
		t.Errorf("the estimate was pushed out in %d of 400 moments", pushed)
	}
	if size := unsafe.Sizeof(*table); size > 128<<10 {
		t.Errorf("a table takes %d bytes", size)
	}
}
