package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// process is a child that is waited for from its start on, so its id cannot
// pass to a stranger while someone still means to signal it: os.Process
// refuses to signal what has been waited for.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the child is gone
	err  error         // what Wait returned; read it after done
}

// startProcess starts the child on an OS thread that lives as long as the
// child does: the kernel sends the signal of dieWithParent when the thread that
// started the child ends, not when the whole parent does.
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
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// exit says how an ended child ended; never nil, for a server should not end.
func (p *process) exit() error {
	if p.err != nil {
		return p.err
	}
	return errors.New("exit status 0")
}

// kill ends the child and waits until it is gone.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.done
	return nil
}

// freeze returns when the child stands still, which is a moment after the
// signal was sent: without the wait it could answer one more command.
func (p *process) freeze() error {
	if err := signalStop(p.cmd.Process); err != nil {
		return err
	}
	return poll(startTimeout, func(context.Context) error {
		if p.ended() {
			return permanent{fmt.Errorf("it ended: %w", p.exit())}
		}
		return stopped(p.pid())
	})
}

func (p *process) thaw() error {
	if err := signalContinue(p.cmd.Process); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// permanent wraps an error that trying again will not mend.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// poll calls try every few milliseconds until it succeeds, fails for good or
// the time is up, and returns its last error.
func poll(timeout time.Duration, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	var last error
	for {
		err := try(ctx)
		if err == nil || errors.As(err, new(permanent)) {
			return err
		}
		if last == nil || ctx.Err() == nil {
			last = err // and not that there was no time for one more try
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %v: %w", timeout, last)
		case <-ticker.C:
		}
	}
}
