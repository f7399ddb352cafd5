package redistest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// dieWithParent lets the kernel kill the child when a crash of the test binary
// leaves nobody to do it.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// stopped returns nil when the process stands still.
func stopped(pid int) error {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return err
	}
	// "pid (name) state ...", and the name may hold anything.
	state := bytes.TrimLeft(stat[bytes.LastIndexByte(stat, ')')+1:], " ")
	if !bytes.HasPrefix(state, []byte("T")) {
		return fmt.Errorf("process %d is not stopped: %.1q", pid, state)
	}
	return nil
}
