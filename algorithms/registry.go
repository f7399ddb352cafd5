package algorithms

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/suggest"
)

// registry is filled from init functions, one after the other, so that another Go module can add an algorithm.
var registry = make(map[string]Algorithm)

func init() {
	Register(TokenBucket{})
	Register(FixedWindow{})
	Register(SlidingWindowLog{})
	Register(SlidingWindowCounter{})
	Register(LeakyBucket{})
	Register(Concurrency{})
}

// aliases maps other names of algorithms to their proper names.
var aliases = map[string]string{"gcra": "token_bucket"}

// Register adds an algorithm. Call it from an init function, because stores read the
// registry when they open. It panics if the name is taken, or if the algorithm does not
// implement exactly one of [Counter], [Recorder] and [Leaser].
func Register(a Algorithm) {
	kinds := 0
	for _, is := range [...]bool{isA[Counter](a), isA[Recorder](a), isA[Leaser](a)} {
		if is {
			kinds++
		}
	}
	if kinds != 1 {
		panic(fmt.Sprintf("algorithm %q must be one of Counter, Recorder and Leaser", a.Name()))
	}
	if _, taken := registry[a.Name()]; taken {
		panic(fmt.Sprintf("algorithm %q is registered twice", a.Name()))
	}
	registry[a.Name()] = a
}

// Get returns the algorithm with a name or an alias. Its error lists the names.
func Get(name string) (Algorithm, error) {
	proper := name
	if other, ok := aliases[name]; ok {
		proper = other
	}
	a, ok := registry[proper]
	if !ok {
		names, hint := Names(), ""
		if similar := suggest.Nearest(name, names); similar != "" {
			hint = fmt.Sprintf(" (did you mean %q?)", similar)
		}
		return nil, fmt.Errorf("unknown algorithm %q%s, must be one of %s", name, hint, strings.Join(names, ", "))
	}
	return a, nil
}

// Names returns the names of all algorithms, sorted.
func Names() []string { return slices.Sorted(maps.Keys(registry)) }

func isA[T Algorithm](a Algorithm) bool {
	_, ok := a.(T)
	return ok
}
