package world

import (
	"hash/fnv"
	"runtime"
	"strings"
	"sync"
)

// role is a number for what the goroutine does that calls: the functions of this module on its stack. Goroutines that
// do something at the same instant are told apart by it.
func role() uint64 {
	var stack [64]uintptr
	pcs := stack[:runtime.Callers(3, stack[:])]
	place := dice(fnvOffset)
	for _, pc := range pcs {
		place = place.number(uint64(pc))
	}
	known, ok := roles.Load(place)
	if !ok {
		known = roleOf(pcs)
		roles.Store(place, known)
	}
	return known.(uint64)
}

var roles sync.Map // by stack

func roleOf(pcs []uintptr) uint64 {
	h := fnv.New64a()
	frames := runtime.CallersFrames(pcs)
	for more := true; more; {
		var f runtime.Frame
		if f, more = frames.Next(); strings.Contains(f.Function, "redisstore") {
			_, _ = h.Write([]byte(f.Function))
		}
	}
	return h.Sum64()
}
