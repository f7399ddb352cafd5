package redistest

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
)

const howToGet = "apt-get install redis-server, or: make redis"

// warned holds back all but the first warning of a test binary.
var warned sync.Once

// Require skips the test without redis-server, or fails it with REQUIRE_REDIS=1.
func Require(t TB) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	if os.Getenv("REQUIRE_REDIS") == "1" {
		t.Fatalf("%s needs %s on PATH, and REQUIRE_REDIS=1: %s", t.Name(), program, howToGet)
	}
	// The go command caches a skipped run and does not notice that a program
	// was installed since, so there is a hint.
	const hint = "then test with -count=1"
	warned.Do(func() {
		fmt.Fprintf(os.Stderr, "\nWARNING: no %s on PATH, tests are SKIPPED, %s the first: %s (%s)\n\n",
			program, t.Name(), howToGet, hint)
	})
	t.Skipf("SKIPPED %s: no %s on PATH: %s (%s)", t.Name(), program, howToGet, hint)
}
