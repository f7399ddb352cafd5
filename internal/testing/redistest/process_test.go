//go:build deep

package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/childprocess"
)

// A copy of this test binary plays a part of its own.
const (
	partVariable = "REDISTEST_PART"
	partCrash    = "crash"
	partSkip     = "skip"
)

// play runs one test of this binary in a process of its own.
func play(t *testing.T, test, part string, env ...string) (output string, err error) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(append(os.Environ(), partVariable+"="+part), env...)
	text, err := cmd.CombinedOutput()
	return string(text), err
}

func TestACrashLeavesNoServer(t *testing.T) {
	if os.Getenv(partVariable) == partCrash {
		fmt.Printf("addr=%s\n", Start(t).Addr())
		self, err := os.FindProcess(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		t.Fatal("still alive: ", self.Kill())
	}
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skipf("nothing stops the servers of a crashed test binary on %s", runtime.GOOS)
	}
	Require(t)

	// The crash leaves its directories behind, so they are made where this test removes them.
	output, err := play(t, "TestACrashLeavesNoServer", partCrash, "TMPDIR="+shortDir(t))
	_, line, found := strings.Cut(output, "addr=")
	addr, _, _ := strings.Cut(line, "\n")
	if !found || err == nil || strings.Contains(output, "still alive") {
		t.Fatalf("the crash did not happen: %v\n%s", err, output)
	}
	err = childprocess.Poll(startTimeout, func(context.Context) error {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
			return fmt.Errorf("%s is still open", addr)
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWithoutRedis(t *testing.T) {
	if os.Getenv(partVariable) == partSkip {
		for _, name := range []string{"one", "two"} {
			t.Run(name, func(t *testing.T) { Start(t) })
		}
		return
	}
	t.Parallel()

	output, err := play(t, "TestWithoutRedis", partSkip, "PATH=", "REQUIRE_REDIS=0")
	if err != nil || strings.Count(output, "WARNING") != 1 {
		t.Errorf("got error %v, want a pass with one warning:\n%s", err, output)
	}
	for _, part := range []string{"SKIPPED TestWithoutRedis/one", "SKIPPED TestWithoutRedis/two", howToGet} {
		if !strings.Contains(output, part) {
			t.Errorf("no %q in:\n%s", part, output)
		}
	}

	output, err = play(t, "TestWithoutRedis", partSkip, "PATH=", "REQUIRE_REDIS=1")
	if err == nil || !strings.Contains(output, "--- FAIL: TestWithoutRedis/one") || !strings.Contains(output, howToGet) {
		t.Errorf("got error %v, want a failure that says how to get redis:\n%s", err, output)
	}
}
