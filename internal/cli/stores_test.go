package cli

import (
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// TestStoresShowWhatIsLent: what is lent is added up over the zones of a store.
func TestStoresShowWhatIsLent(t *testing.T) {
	for _, c := range []struct {
		lent, loans map[string]int64
		want        string
	}{
		{nil, nil, "-"},
		{map[string]int64{"a": 0}, map[string]int64{"a": 0}, "0 of 0 keys"},
		{map[string]int64{"a": 7}, map[string]int64{"a": 1}, "7 of 1 key"},
		{map[string]int64{"a": 7, "b": 5}, map[string]int64{"a": 1, "b": 3}, "12 of 4 keys"},
	} {
		s := &adminapi.Store{Name: "redis", Zones: []string{"a", "b"}, Lent: c.lent, Loans: c.loans}
		if with := strings.Join(storeCells(s), "|"); with != "redis|-|-|-|-|-|-|"+c.want+"|a b" {
			t.Errorf("lent %v of %v: %s", c.lent, c.loans, with)
		}
		rows := [][]string{{"STORE", "ANSWERS", "BREAKER", "P50", "P99", "INSTANCES", "KEYS", lentColumn, "ZONES"}, storeCells(s)}
		if without := only(map[string]bool{lentColumn: false}, rows)[1]; strings.Join(without, "|") != "redis|-|-|-|-|-|-|a b" {
			t.Errorf("where nothing is lent: %q", without)
		}
	}
}
