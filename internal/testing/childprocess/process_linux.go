package childprocess

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel kill the child when the parent crashes.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// stopped returns nil if the process stands still.
func stopped(pid int) error {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return err
	}
	// "pid (name) state ...", where the name can be any text.
	state := bytes.TrimLeft(stat[bytes.LastIndexByte(stat, ')')+1:], " ")
	if !bytes.HasPrefix(state, []byte("T")) {
		return fmt.Errorf("process %d is not stopped: %.1q", pid, state)
	}
	return nil
}
