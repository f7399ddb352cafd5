// Package filelock locks files, so that test binaries that run beside each other do not use the same thing.
package filelock

import "os"

// Lock locks a file for this process, and waits while another one has locked it. The lock ends with the file.
func Lock(file *os.File) error { return lock(file, true) }

// TryLock locks a file for this process, or fails if another one has locked it.
func TryLock(file *os.File) error { return lock(file, false) }
