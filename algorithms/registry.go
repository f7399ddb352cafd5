package algorithms

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/suggest"
)

// registry has all algorithms, sorted by name.
var registry = [...]Algorithm{
	Concurrency{}, FixedWindow{}, LeakyBucket{}, SlidingWindowCounter{}, SlidingWindowLog{}, TokenBucket{},
}

// Get returns the algorithm with a name, or with another word for it. Its error lists the names.
func Get(name string) (Algorithm, error) {
	if name == "gcra" {
		name = "token_bucket"
	}
	names, hint := Names(), ""
	if i := slices.Index(names, name); i >= 0 {
		return registry[i], nil
	}
	if similar := suggest.Nearest(name, names); similar != "" {
		hint = fmt.Sprintf(" (did you mean %q?)", similar)
	}
	return nil, fmt.Errorf("unknown algorithm %q%s, must be one of %s", name, hint, strings.Join(names, ", "))
}

// Names returns the names of all algorithms, sorted.
func Names() (names []string) {
	for _, a := range registry {
		names = append(names, a.Name())
	}
	return names
}
