package rig

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// startTimeout is how long a server may take to answer, and to end.
const startTimeout = 30 * time.Second

// Process is a child that ends with its parent.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // read it after done
}

// Start starts the command. The kernel sends the signal of Pdeathsig when the thread
// ends that started the child, so that thread stays until the child is gone.
func Start(cmd *exec.Cmd) (*Process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// PID is the child's.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Await asks until it gets no error, the child ends or time is up.
func (p *Process) Await(ask func() error) error {
	deadline := time.Now().Add(startTimeout)
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("it ended: %w", errors.Join(p.err, err))
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %v: %w", startTimeout, err)
		}
	}
}

// End asks the child to end, and makes it.
func (p *Process) End() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return nil
	case <-time.After(startTimeout):
	}
	err := p.cmd.Process.Kill()
	<-p.done
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// FreePort is a port of 127.0.0.1 that nothing listens on.
func FreePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}
