//go:build !unix

package childprocess

import (
	"errors"
	"os"
)

// signalStop is not possible here.
func signalStop(*os.Process) error { return errors.ErrUnsupported }

// signalContinue does nothing, because nothing can be stopped.
func signalContinue(*os.Process) error { return nil }
