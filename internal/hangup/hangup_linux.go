package hangup

import "golang.org/x/sys/unix"

// seesHangUp reports whether a hang-up shows before all earlier data is read.
const seesHangUp = true

// hungUp reports whether the other end of a socket has stopped sending.
func hungUp(socket uintptr) bool {
	fds := []unix.PollFd{{Fd: int32(socket), Events: unix.POLLRDHUP}}
	for {
		n, err := unix.Poll(fds, 0)
		if err != unix.EINTR { // as it comes from the system
			return n > 0 && fds[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
		}
	}
}
