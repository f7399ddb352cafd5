package compare

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// order compares definitions.
func order(a, b *zone.Zone) int {
	if c := bytes.Compare(a.JSON, b.JSON); c != 0 {
		return c
	}
	return strings.Compare(a.OnStoreError, b.OnStoreError)
}

// sorted sorts the uses of a zone by their definition, because Caddy loads servers in another order each time.
func sorted(uses []*zone.Zone) []*zone.Zone {
	return slices.SortedStableFunc(slices.Values(uses), order)
}

// differing returns the uses without those that both configs have.
func differing(was, is []*zone.Zone) (old, changed []*zone.Zone) {
	changed = slices.Clone(is)
	for _, use := range was {
		if i := slices.IndexFunc(changed, func(other *zone.Zone) bool { return order(use, other) == 0 }); i >= 0 {
			changed = slices.Delete(changed, i, i+1)
		} else {
			old = append(old, use)
		}
	}
	return old, changed
}

// counts says what happens to the counts of keys when a config with the same store replaces the other.
func counts(was, is []*zone.Zone) string {
	had, has := states(was), states(is)
	kept := 0
	for state := range has {
		if had[state] {
			kept++
		}
	}
	switch kept {
	case len(has):
		return adminapi.CountsKept
	case 0:
		return adminapi.CountsAnew
	}
	return adminapi.CountsPartly
}

// states returns what the names of states of the uses begin with.
func states(uses []*zone.Zone) map[string]bool {
	all := make(map[string]bool)
	for _, use := range uses {
		of := fmt.Sprintf("%q %v ", use.Key, use.Template.Prefixes)
		rules := use.States()
		for _, rule := range rules {
			all[of+rule.ID()] = true
		}
		if len(rules) == 0 { // its limits depend on the request, and no request has come yet
			all[of] = true
		}
	}
	return all
}
