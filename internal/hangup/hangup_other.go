//go:build !linux

package hangup

// seesHangUp reports whether a hang-up shows before all earlier data is read.
const seesHangUp = false

func hungUp(uintptr) bool { return false }
