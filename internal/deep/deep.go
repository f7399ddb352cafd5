// Package deep says how much of a long test runs. "make test" runs enough of it to find
// what breaks often; "make deep" sets DEEP=1 and runs all of it.
package deep

import "os"

// Run reports whether the long tests run in full.
func Run() bool { return os.Getenv("DEEP") == "1" }

// Steps returns how many steps a test makes: usual in "make test", all in "make deep".
func Steps(usual, all int) int {
	if Run() {
		return all
	}
	return usual
}
