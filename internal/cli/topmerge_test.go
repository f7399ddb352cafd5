package cli

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// TestTopRanksAllZones: the keys of all zones are one ranking, and so many of it are shown.
func TestTopRanksAllZones(t *testing.T) {
	list := new(topList)
	for zone, counts := range map[string][]uint64{"api": {9, 5, 1}, "logins": {7, 6}} {
		top := adminapi.Top{Zone: zone, By: byRequests}
		for i, n := range counts {
			top.Keys = append(top.Keys, adminapi.KeyCount{KeyText: adminapi.NewKeyText(fmt.Sprint(i), 1), Requests: n})
		}
		list.add(new(topSum).add(&top, nil), 3)
	}
	list.rank(byRequests, 3)
	var got []string
	for _, k := range list.keys {
		got = append(got, fmt.Sprint(k.zone, " ", k.Requests))
	}
	if want := "[api 9 logins 7 logins 6]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// TestTopSums: the sums over several instances are bounds of the true sums, also of keys that are not
// in the lists of all of them.
func TestTopSums(t *testing.T) {
	const caddys, listed = 3, 20
	random := rand.New(rand.NewPCG(5, 6))
	requests, refused := make(map[string]uint64), make(map[string]uint64)
	byRequests, byRefused := new(topSum), new(topSum)
	list := func(r *topk.Recent, by topk.Kind, name string) *adminapi.Top {
		entries, unlisted, _ := r.Top(listed, by)
		top := &adminapi.Top{Zone: "z", By: name, Unlisted: unlisted}
		for _, e := range entries {
			top.Keys = append(top.Keys, adminapi.KeyCount{
				KeyText:  adminapi.NewKeyText(e.Key, e.Length),
				Requests: e.Counts[topk.Requests].AtLeast, RequestsError: e.Counts[topk.Requests].Error,
				Refused: e.Counts[topk.Refused].AtLeast, RefusedError: e.Counts[topk.Refused].Error,
			})
		}
		return top
	}
	for range caddys {
		r := topk.New(1 << 40)
		for range 20_000 {
			key, kind := fmt.Sprint(int(random.ExpFloat64()*200)), topk.Requests
			if requests[key]++; random.IntN(3) == 0 {
				refused[key]++
				kind = topk.Refused
			}
			r.Add(key, "", kind)
		}
		all := list(r, topk.Requests, "requests")
		byRequests.add(all, nil)
		byRefused.add(list(r, topk.Refused, "refused"), all)
	}
	for _, s := range []*topSum{byRequests, byRefused} {
		keys := s.top(10)
		if len(keys) != 10 {
			t.Errorf("by %s: %d keys", s.by, len(keys))
		}
		uncertain := 0
		for i, k := range s.top(1000) {
			if n := requests[k.Key]; n < k.Requests || n > k.Requests+k.RequestsError {
				t.Errorf("by %s: %s came %d times, not %d and up to %d more", s.by, k.Key, n, k.Requests, k.RequestsError)
			}
			if n := refused[k.Key]; n < k.Refused || n > k.Refused+k.RefusedError {
				t.Errorf("by %s: %s was refused %d times, not %d and up to %d more", s.by, k.Key, n, k.Refused, k.RefusedError)
			}
			if k.RequestsError > 0 {
				uncertain++
			}
			if i > 0 && count(&k.KeyCount, s.by) > count(&s.top(1000)[i-1].KeyCount, s.by) {
				t.Errorf("by %s: place %d has more than place %d", s.by, i, i-1)
			}
		}
		if uncertain == 0 {
			t.Errorf("by %s: no key is missing in a list", s.by)
		}
	}
}

// TestTopSumsSlots: an instance that does not list a key may have counted as much time as its list says.
func TestTopSumsSlots(t *testing.T) {
	sum := new(topSum)
	for i, of := range []struct{ ms, unlisted uint64 }{{500, 100}, {0, 40}, {1250, 0}} {
		top := &adminapi.Top{Zone: "z", By: bySlotTime, Unlisted: of.unlisted}
		if of.ms > 0 {
			top.Keys = append(top.Keys, adminapi.KeyCount{KeyText: adminapi.NewKeyText("a", 1), SlotMS: of.ms, SlotMSError: uint64(i)})
		}
		sum.add(top, nil)
	}
	keys := sum.top(10)
	if len(keys) != 1 || keys[0].SlotMS != 1750 || keys[0].SlotMSError != 42 || count(&keys[0].KeyCount, bySlotTime) != 1750 {
		t.Errorf("%+v", keys)
	}
	for want, k := range map[string]adminapi.KeyCount{"1.7s": {SlotMS: 1700}, "0.0s": {SlotMS: 2}, "1.8s..1.9s": {SlotMS: 1800, SlotMSError: 120}} {
		if got := formatSlots(&k); got != want {
			t.Errorf("%+v is %q, want %q", k, got, want)
		}
	}
}
