package compare

import (
	"encoding/json"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// harmless are options that refuse nobody, whatever they say.
var harmless = []string{"headers", "overrides"}

// loosening are options that let requests through: without them, more requests are refused.
var loosening = []string{"exempt", "match", "charge"}

// tightening are options that refuse requests: without them, fewer are refused.
var tightening = []string{"ban", "block"}

// stricter reports whether a zone can refuse requests because an option differs. What is not known to let through more
// can do so.
func stricter(option string, was, is any) bool {
	switch {
	case slices.Contains(harmless, option):
		return false
	case slices.Contains(loosening, option):
		return was != nil
	case slices.Contains(tightening, option):
		return is != nil
	case option == "enforce":
		return share(is) > share(was)
	case option == "on_store_error":
		return is != "allow"
	case option == "missing_key":
		return is != config.MissingSkip
	}
	return true
}

// share returns how many percent of the keys an option enforce is for: all without it.
func share(value any) float64 {
	if n, ok := value.(json.Number); ok {
		percent, err := n.Float64()
		if err == nil {
			return percent
		}
	}
	return 100
}

// refuses reports whether a zone can refuse requests: it is no dry run.
func refuses(uses []*zone.Zone) bool {
	return slices.ContainsFunc(uses, func(z *zone.Zone) bool { return z.Enforces() })
}
