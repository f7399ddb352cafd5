//go:build unix

package usage

import (
	"syscall"
	"testing"
	"time"
)

// cpuTime returns how much CPU time the process has used, which tells more than the time does beside other
// work.
func cpuTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
