//go:build unix

package redistest

import (
	"os"
	"syscall"
)

// lockFile locks a file for this process, or fails if another one has locked it.
func lockFile(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
