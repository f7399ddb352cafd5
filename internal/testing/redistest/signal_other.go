//go:build !unix

package redistest

import (
	"errors"
	"os"
)

// signalStop has no counterpart here.
func signalStop(*os.Process) error { return errors.ErrUnsupported }

// signalContinue finds nothing to do, since nothing can be stopped.
func signalContinue(*os.Process) error { return nil }
