//go:build !unix

package redistest

import (
	"errors"
	"os"
)

// lockFile is not possible here.
func lockFile(*os.File) error { return errors.ErrUnsupported }
