package fleet

import (
	"fmt"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// TestMerge: what instances have counted of a key is added up, also of keys that some do not list, and once of those that one lists twice. A key whose text is the
// beginning of several is told from the others.
func TestMerge(t *testing.T) {
	key := func(text, plan string, length int, requests, refused uint64) adminapi.KeyCount {
		return adminapi.KeyCount{KeyText: adminapi.NewKeyText(text, length), Plan: plan, Requests: requests, Refused: refused}
	}
	instances := [][]adminapi.KeyCount{
		{key("a", "free", 1, 50, 0), key("b", "", 1, 40, 30), key("\xff", "", 1, 1, 1), key("b", "", 1, 40, 30)},
		nil,
		{key("c", "", 1, 60, 1), key("b", "pro", 1, 41, 2), key("b", "", 300, 9, 9), key("\xfe", "", 1, 2, 2)},
	}
	for refused, want := range map[bool]string{
		false: "b pro 81 32; c  60 1; a free 50 0; ",
		true:  "b pro 81 32; b  9 9; \ufffd  2 2; ",
	} {
		got := ""
		for _, k := range Merge(instances, refused, 3) {
			got += fmt.Sprintf("%s %s %d %d; ", k.Key, k.Plan, k.Requests, k.Refused)
		}
		if got != want {
			t.Errorf("by refusals %v: %q, want %q", refused, got, want)
		}
	}
	if none := Merge([][]adminapi.KeyCount{nil}, false, 3); none == nil || len(none) > 0 {
		t.Errorf("%v is no empty list", none)
	}
}
