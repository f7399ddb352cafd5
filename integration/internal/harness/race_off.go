//go:build !race

package harness

// raceFlags builds Caddy with the race detector when the tests have it.
var raceFlags []string
