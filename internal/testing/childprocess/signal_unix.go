//go:build unix

package childprocess

import (
	"os"
	"syscall"
)

func signalStop(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

func signalContinue(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
