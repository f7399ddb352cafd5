//go:build !linux

package integration_test

import "os/exec"

// dieWithParent needs Linux; elsewhere only the end of a test ends its children.
func dieWithParent(*exec.Cmd) {}
