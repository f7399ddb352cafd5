//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd || solaris || illumos

package node

import "syscall"

// hungUp reports whether the other side has closed a connection, or has sent something although
// nothing was asked.
func hungUp(conn syscall.RawConn) bool {
	over := true
	// Read would fail once the deadline of the call before is over, and Control does not.
	err := conn.Control(func(socket uintptr) {
		_, _, err := syscall.Recvfrom(int(socket), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		over = err != syscall.EAGAIN && err != syscall.EWOULDBLOCK // it is a number
	})
	return over || err != nil
}
