package caddyratelimit

import (
	"strings"
	"testing"
)

func TestLateCost(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "1": 1, " 17 ": 17, "1000000000000": 1e12} {
		if got, err := lateCost([]string{text}); got != want || err != nil {
			t.Errorf("%q: got %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "-1", "1.5", "1e3", "0x10", "many", "1000000000001", "99999999999999999999", strings.Repeat("9", 10_000)} {
		if got, err := lateCost([]string{text}); err == nil {
			t.Errorf("%.20q: got %d", text, got)
		} else if len(err.Error()) > 200 {
			t.Errorf("%.20q: the error has %d bytes", text, len(err.Error()))
		}
	}
	if _, err := lateCost([]string{"1", "1"}); err == nil {
		t.Error("two values are taken for one")
	}
}
