package topk

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestGroupsAmongRandomOnes: three values hide among values that come once. Each of them is listed, nothing else is, and the
// counts are within their bounds.
func TestGroupsAmongRandomOnes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	long := strings.Repeat("x", MaxKey)
	hidden := []string{"bot/1.0", "", long + "1"}
	g, exact := NewGroups(time.Hour), make(map[string]uint64)
	keys := make(map[string]map[string]bool)
	for i := range 60_000 {
		value, refused := fmt.Sprint("browser ", random.Uint64()), false
		switch dice := random.IntN(100); {
		case dice < 3*len(hidden) && i > 10_000: // when all places are taken
			value, refused = hidden[dice/3], true
		case dice == 99:
			value = long + fmt.Sprint(random.Uint64()) // begins like one of the three
		}
		key := fmt.Sprint(random.IntN(100))
		if exact[value]++; keys[value] == nil {
			keys[value] = make(map[string]bool)
		}
		keys[value][key] = true
		g.Add(value, key, refused)
	}
	top, total, _ := g.Top(0.01)
	if total != 60_000 || len(top) != len(hidden) {
		t.Fatalf("%d groups of %d requests, want %d: %+v", len(top), total, len(hidden), top)
	}
	for _, value := range hidden {
		found := false
		for _, c := range top {
			if c.Length != len(value) || c.Value != value[:min(len(value), MaxKey)] {
				continue
			}
			found = true
			n := exact[value]
			if n < c.Requests.AtLeast || n > c.Requests.AtLeast+c.Requests.Error || n > c.Refused.AtLeast+c.Refused.Error || c.Refused.AtLeast < c.Requests.AtLeast*9/10 {
				t.Errorf("%.20q: %d requests, estimated %+v", value, n, c)
			}
			if most := float64(len(keys[value])); float64(c.Keys) > most*(1+4*KeysError) || float64(c.Keys) < most*(1-4*KeysError) {
				t.Errorf("%.20q: %v keys, estimated %d", value, most, c.Keys)
			}
		}
		if !found {
			t.Errorf("%.20q is not listed", value)
		}
	}
}

// TestGroupsOfAMillionValues: a million values, each a part of a much longer text, take no more memory than the places.
func TestGroupsOfAMillionValues(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	g, now := NewGroups(time.Minute), time.Now()
	for i := range 1_000_000 {
		header := fmt.Sprintf("%07d%s", i, strings.Repeat("x", 1000))
		g.Add(header[:i%2*500+7], "key", false)
		if i%200_000 == 0 {
			now = now.Add(time.Minute)
			g.Rotate(now)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	used := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d bytes for a million values", used)
	if used > 2<<20 {
		t.Errorf("%d bytes for a million values", used)
	}
	if top, _, _ := g.Top(0.01); len(top) != 0 {
		t.Errorf("%d groups, want none", len(top))
	}
	for range 5 {
		for range 1000 {
			g.Add("bot", "key", false)
		}
		now = now.Add(time.Minute)
		g.Rotate(now)
	}
	top, total, _ := g.Top(0.01)
	if total != 1000 || len(top) != 1 || top[0].Requests != (Count{1000, 0}) || top[0].Before == nil || *top[0].Before != (Count{2000, 0}) {
		t.Errorf("%d requests: %+v", total, top)
	}
	runtime.KeepAlive(g)
}
