package rig

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// Machine says in a line where, with what and when figures were measured.
func Machine(redisVersion string) string {
	return fmt.Sprintf("%s, %s, %s, Redis %s on the same CPUs, %s",
		Processors(), runtime.GOOS, runtime.Version(), redisVersion, time.Now().Format(time.DateOnly))
}

// Processors says how many processors of which model this machine has.
func Processors() string {
	model := runtime.GOARCH
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			model = strings.TrimSpace(value)
			break
		}
	}
	return fmt.Sprintf("%d CPUs (%s)", runtime.NumCPU(), model)
}
