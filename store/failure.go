package store

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// The kinds of failures: the cause to look for when a store does not decide.
const (
	FailureTimeout  = "timeout"  // no answer in time: server frozen or overloaded, far away, or no connection free
	FailureRefused  = "refused"  // nothing listens at the address
	FailureNetwork  = "network"  // the connection broke, or could not be made for another reason
	FailureLoading  = "loading"  // the server is starting, or a replica has no master yet
	FailureReadonly = "readonly" // the server is a replica
	FailureOOM      = "oom"      // the server's memory is full and nothing may be evicted
	FailureAuth     = "auth"     // wrong password or missing permission
	FailureCluster  = "cluster"  // the cluster is down, or its slots are moving
	FailureOpen     = "open"     // the store was not asked because the breaker is open
	FailureBusy     = "busy"     // the store was not asked because this process is too busy, see [ErrBusy]
	FailureOther    = "other"
)

// Failures returns all kinds of failures.
func Failures() []string {
	return []string{
		FailureTimeout, FailureRefused, FailureNetwork, FailureLoading, FailureReadonly, FailureOOM, FailureAuth,
		FailureCluster, FailureOpen, FailureBusy, FailureOther,
	}
}

// Failure returns the kind of a store's error, for statistics. It knows [ErrUnavailable],
// [ErrFull], [ErrBusy], errors with a method Failure() string, and common errors of the network and of
// contexts. Any other error is [FailureOther].
func Failure(err error) string {
	switch {
	case errors.Is(err, ErrUnavailable):
		return FailureOpen
	case errors.Is(err, ErrFull):
		return FailureOOM
	case errors.Is(err, ErrBusy):
		return FailureBusy
	}
	var typed interface{ Failure() string }
	if errors.As(err, &typed) {
		return typed.Failure()
	}
	var netError net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return FailureTimeout
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT):
		return FailureRefused // if a Unix socket's file is missing, no server listens
	case errors.As(err, &netError):
		if netError.Timeout() {
			return FailureTimeout
		}
		return FailureNetwork
	case errors.Is(err, net.ErrClosed), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return FailureNetwork
	}
	return FailureOther
}
