//go:build !linux

package redistest

import "os/exec"

// dieWithParent has no counterpart here: a crashed test binary leaves its
// servers behind.
func dieWithParent(*exec.Cmd) {}

// stopped trusts the signal: there is no portable way to see its effect.
func stopped(int) error { return nil }
