package integration_test

import (
	"os/exec"
	"syscall"
)

// dieWithParent lets the kernel kill the child when a crash of the test binary leaves
// nobody to do it.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
