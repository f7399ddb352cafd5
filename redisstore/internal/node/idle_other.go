//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd || solaris || illumos)

package node

import "syscall"

// hungUp is not known on this system.
func hungUp(syscall.RawConn) bool { return false }
