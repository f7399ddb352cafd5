package integration_test

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
)

// process is a child that is waited for from its start on, so that its id cannot pass
// to a stranger while a test still means to signal it.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the child is gone
	err  error         // what Wait returned; read it after done
}

// startProcess starts the child on an OS thread that lives as long as the child: the
// kernel sends the signal of dieWithParent when that thread ends.
func startProcess(cmd *exec.Cmd) (*process, error) {
	dieWithParent(cmd)
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, <-started
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill ends the child and waits until it is gone.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.done
	return nil
}
