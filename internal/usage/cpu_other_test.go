//go:build !unix

package usage

import (
	"testing"
	"time"
)

// begun is the zero of cpuTime.
var begun = time.Now()

// cpuTime returns how much time has passed: more than this process has used, where others run beside it.
func cpuTime(*testing.B) time.Duration { return time.Since(begun) }
