//go:build race

package integration_test

// raceFlags builds Caddy with the race detector when the tests have it.
var raceFlags = []string{"-race"}
