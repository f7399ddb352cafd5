package redistest

import (
	"errors"
	"fmt"
	"os"
	"testing"
)

// TB is a test, or a program: see [Run].
type TB = testing.TB

// Run starts a redis-server for a program that is not a test. The server runs until stop is
// called; its methods that would end a test panic.
func Run(options ...Option) (server *Server, stop func() error, err error) {
	p := new(caller)
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case failure:
			err = errors.Join(reason, p.stop())
		default:
			panic(reason)
		}
	}()
	return Start(p, options...), p.stop, nil
}

// caller is the TB of a program that is not a test, as far as this package needs one.
type caller struct {
	testing.TB
	cleanups []func()
	errs     []error
}

// failure is what [caller.Fatal] panics with.
type failure struct{ error }

func (p *caller) Helper()            {}
func (p *caller) Name() string       { return "the program" }
func (p *caller) Cleanup(end func()) { p.cleanups = append(p.cleanups, end) }
func (p *caller) Errorf(format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf(format, args...))
}

func (p *caller) Fatal(args ...any)                 { panic(failure{errors.New(fmt.Sprint(args...))}) }
func (p *caller) Fatalf(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }
func (p *caller) Skipf(format string, args ...any)  { p.Fatalf(format, args...) }

// TempDir makes a directory that stop removes.
func (p *caller) TempDir() string {
	dir, err := os.MkdirTemp("", "redistest")
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			p.errs = append(p.errs, err)
		}
	})
	return dir
}

// stop does what the end of a test does.
func (p *caller) stop() error {
	for len(p.cleanups) > 0 {
		last := len(p.cleanups) - 1
		end := p.cleanups[last]
		p.cleanups = p.cleanups[:last]
		end()
	}
	return errors.Join(p.errs...)
}
