package cli

import (
	"fmt"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// TestTopRanksAllZones: the keys of all zones are one ranking, and so many of it are shown.
func TestTopRanksAllZones(t *testing.T) {
	list := new(topList)
	for zone, counts := range map[string][]uint64{"api": {9, 5, 1}, "logins": {7, 6}} {
		top := adminapi.Top{Zone: zone, By: byRequests}
		for i, n := range counts {
			top.Keys = append(top.Keys, adminapi.KeyCount{KeyText: adminapi.NewKeyText(fmt.Sprint(i), 1), Requests: n})
		}
		list.add(top)
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
