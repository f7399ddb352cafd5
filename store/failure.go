package store

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// The kinds of failures: what to look for when a store does not decide.
const (
	FailureTimeout  = "timeout"  // no answer in time: frozen, overloaded, far away, or no connection free
	FailureRefused  = "refused"  // nobody listens there
	FailureNetwork  = "network"  // the connection broke, or could not be made otherwise
	FailureLoading  = "loading"  // the server is starting, or a replica has no master yet
	FailureReadonly = "readonly" // what answers is a replica
	FailureOOM      = "oom"      // the server's memory is full and nothing may be evicted
	FailureAuth     = "auth"     // password or rights
	FailureCluster  = "cluster"  // the cluster is down, or its slots are moving
	FailureOpen     = "open"     // not asked: the breaker is open
	FailureOther    = "other"
)

// Failures returns all kinds of failures.
func Failures() []string {
	return []string{
		FailureTimeout, FailureRefused, FailureNetwork, FailureLoading, FailureReadonly, FailureOOM, FailureAuth,
		FailureCluster, FailureOpen, FailureOther,
	}
}

// Failure returns the kind of an error of a store, for statistics. [ErrUnavailable] and
// [ErrFull] say it, and any error with a method Failure() string; of all others it is clear
// from what they wrap, or they are [FailureOther].
func Failure(err error) string {
	switch {
	case errors.Is(err, ErrUnavailable):
		return FailureOpen
	case errors.Is(err, ErrFull):
		return FailureOOM
	}
	var says interface{ Failure() string }
	if errors.As(err, &says) {
		return says.Failure()
	}
	var netError net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return FailureTimeout
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT):
		return FailureRefused // a socket's file that is not there is a server that is not there
	case errors.As(err, &netError):
		if netError.Timeout() {
			return FailureTimeout
		}
		return FailureNetwork
	case errors.Is(err, net.ErrClosed), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return FailureNetwork
	}
	return FailureOther
}
