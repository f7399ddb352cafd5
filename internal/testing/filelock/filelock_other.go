//go:build !unix

package filelock

import (
	"errors"
	"os"
)

// lock is not possible here.
func lock(*os.File, bool) error { return errors.ErrUnsupported }
