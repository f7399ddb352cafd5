package doctor

import (
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

var adaptiveChecks = []check[adminapi.Adaptive]{{"upstream", overloads}}

// mixed is how much the times of slots differ from which on quick and slow requests should have a limit each. A memoryless
// server has 2, and 10 ms beside one in five that takes a second has 4.6.
const mixed = 4

// overloads says whether the upstream of an adaptive limit is the bottleneck.
func overloads(a *adminapi.Adaptive) []result {
	switch {
	case a.Waiting > 0 && a.Spread > mixed:
		return append(overloaded(a), warn(partLimit.With(), "quick and slow requests share the limit, so it follows the upstream slowly: a slot is taken for %v on average, and most of the time by requests that take %v",
			seconds(a.Latency), seconds(a.Latency*a.Spread))...)
	case a.Waiting > 0:
		return overloaded(a)
	case a.Failed > a.Useful/10 && a.Failed > enough:
		return warn(helpUpstream.With(), "the upstream failed %d of %d requests", a.Failed, a.Failed+a.Useful+a.Left)
	}
	return ok("no request waits for the upstream; its limit is %d", a.Limit)
}

func overloaded(a *adminapi.Adaptive) []result {
	return warn(helpUpstream.With(), "the upstream is the bottleneck%s: %d requests run, as many as it can use, and %d wait", since(a.Since), a.Running, a.Waiting)
}

// seconds is a duration to read.
func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond)
}

// since says since when requests wait.
func since(at *time.Time) string {
	if at == nil {
		return ""
	}
	return " since " + at.Format(time.DateTime)
}
