// Package childprocess runs programs for tests and benchmarks. A child never outlives the
// process that started it.
package childprocess

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Process is a child. It is waited for from its start on, so its id cannot pass to another
// process while somebody still means to signal it: [os.Process] refuses to signal a process
// that has been waited for.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the child has ended
	err  error         // the result of Wait; valid after done
}

// Start starts a child on an OS thread that lives as long as the child does, because the
// kernel sends the signal of dieWithParent when that thread ends, not when the whole parent
// does.
func Start(cmd *exec.Cmd) (*Process, error) {
	dieWithParent(cmd)
	p := &Process{cmd: cmd, done: make(chan struct{})}
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
	return p, count()
}

// count adds one byte to the file that PROCESSES names. "make test" bounds how many processes its tests start.
func count() error {
	name := os.Getenv("PROCESSES")
	if name == "" {
		return nil
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(".")
	return errors.Join(err, f.Close())
}

// PID returns the id of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended reports whether the child has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Err returns how a child that has ended did so: nil if its exit status was 0.
func (p *Process) Err() error { return p.err }

// Kill ends the child, and waits until it has ended.
func (p *Process) Kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.done
	return nil
}

// Terminate sends SIGTERM to the child. It does not wait.
func (p *Process) Terminate() error { return p.cmd.Process.Signal(syscall.SIGTERM) }

// End asks the child to end, and kills it if it has not ended when the time is up.
func (p *Process) End(timeout time.Duration) error {
	_ = p.Terminate()
	select {
	case <-p.done:
		return nil
	case <-time.After(timeout):
		return p.Kill()
	}
}

// Freeze stops the child with SIGSTOP. It returns when the child stands still, which is a
// moment after the signal: without the wait the child could do one more thing.
func (p *Process) Freeze(timeout time.Duration) error {
	if err := signalStop(p.cmd.Process); err != nil {
		return err
	}
	return p.Await(timeout, func(context.Context) error { return stopped(p.PID()) })
}

// Thaw has a frozen child go on. It does nothing to a child that runs or has ended.
func (p *Process) Thaw() error {
	if err := signalContinue(p.cmd.Process); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// errEnded says that a child no longer does what is waited for.
var errEnded = errors.New("it ended")

// Await is [Poll] for something that the child does. It also returns when the child has
// ended.
func (p *Process) Await(timeout time.Duration, try func(context.Context) error) error {
	return Poll(timeout, func(ctx context.Context) error {
		if p.Ended() {
			return fmt.Errorf("%w: %v", errEnded, p.cmd.ProcessState)
		}
		return try(ctx)
	})
}

// Poll calls try every few milliseconds until it succeeds or the time is up. It returns the
// last error.
func Poll(timeout time.Duration, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var last error // rather than one that says there was no time for another try
	for {
		err := try(ctx)
		switch {
		case err == nil, errors.Is(err, errEnded):
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("not within %v: %w", timeout, cmp.Or(last, err))
		}
		last = err
		time.Sleep(5 * time.Millisecond)
	}
}

// BuildCaddy builds cmd/caddy below the root of the repository, and returns the path of the binary. It is in the cache of the
// go command, which links it again only if its parts have changed. Linking a Caddy takes six seconds of a core.
func BuildCaddy(root string, flags ...string) (path string, err error) {
	// In a checkout that belongs to another user, go finds no version. No test needs DWARF, and
	// to write it is a third of the linker's work.
	args := append([]string{"run", "-buildvcs=false", "-ldflags=-w", "-exec", "echo"}, flags...)
	for range 2 { // what was linked just now is somewhere else, and gone
		var complaint bytes.Buffer
		cmd := exec.Command("go", append(args, "./cmd/caddy")...)
		cmd.Dir, cmd.Stderr = root, &complaint
		output, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("building Caddy: %w\n%s", err, complaint.Bytes())
		}
		path = strings.TrimSpace(string(output))
		if _, err = os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("the go command does not keep the Caddy that it has linked: there is no %s", path)
}
