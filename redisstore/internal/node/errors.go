package node

import (
	"errors"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Failure returns the kind of an error, see [store.Failure]. The text of an error from Redis
// decides; other errors are those of any store.
func Failure(err error) string {
	if errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrFull) {
		return store.Failure(err)
	}
	var said redis.Error
	if errors.As(err, &said) {
		return protocol.ReadError(said.Error()).Failure()
	}
	return store.Failure(err)
}

// read reads an error that Redis answered. Of any other error it says only that the call may have run.
func read(err error) protocol.ErrorReply {
	if err == nil {
		return protocol.ErrorReply{}
	}
	var said redis.Error // which is allocated
	if errors.As(err, &said) {
		return protocol.ReadError(said.Error())
	}
	return protocol.ErrorReply{}
}

// LacksRight reports whether Redis said that the user may not run a command, or use a key.
func LacksRight(err error) bool { return read(err).LacksRight() }

// replied reports whether Redis has answered a command, also if with an error.
func replied(err error) bool {
	if err == nil {
		return true
	}
	var said redis.Error // which is allocated
	return errors.As(err, &said)
}

// works reports whether an error proves that Redis answers and runs scripts: it cannot write,
// or not this key, which may be of a slot that no node has, or the script failed. Everything
// else that is no such proof is a failure: Redis did not answer, or said what holds for every
// call (LOADING, MASTERDOWN, BUSY, a whole Cluster that is down, a password or a right that
// is missing, too many clients).
func works(err error) bool {
	e := read(err)
	return e.RefusesWrite() || e.FromScript() || e.Failure() == store.FailureCluster && !isCutOff(err)
}

// unsentError is in the errors of calls that were not made, because there was no server to
// send them to.
type unsentError struct{ error }

func (e unsentError) Unwrap() error { return e.error }

// saysNothing reports whether an error says nothing of Redis: the request has not been sent, because its caller or
// this process had no time.
func saysNothing(err error) bool { return errors.Is(err, ErrLate) || errors.Is(err, store.ErrBusy) }

// Unsent wraps the reason why a call was not made.
func Unsent(err error) error { return unsentError{err} }

// MayHaveRun reports whether the script may have been carried out, as a whole or in part,
// although a call of it has failed. Where it returns false, the call can be repeated:
// nothing was sent, or Redis said that it did not begin, or that it stopped before it
// had written anything.
func MayHaveRun(err error) bool {
	switch {
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrClosed):
		return false
	case errors.As(err, new(unsentError)), protocol.IsUnwritten(err):
		return false
	}
	return read(err).MayHaveRun() // also a broken connection, a timeout, a reply that makes no sense
}

// Elsewhere reports whether an error says that another node is to be asked, or the same one
// again in a moment. Then nothing has been carried out.
func Elsewhere(err error) bool {
	_, moved := redis.IsMovedError(err)
	return moved || isAsk(err) || redis.IsClusterDownError(err) || redis.IsTryAgainError(err) || errors.Is(err, store.ErrClosed) // a node that no longer belongs
}

func isAsk(err error) bool {
	_, ask := redis.IsAskError(err)
	return ask
}

// isCutOff reports whether an error says that the node sees too few of the others. Of a single slot without a node it says
// something else.
func isCutOff(err error) bool {
	return redis.IsClusterDownError(err) && strings.Contains(err.Error(), "The cluster is down")
}

// closedOr calls the closing of a client what callers know it by, and keeps errors short.
func closedOr(err error) error {
	if errors.Is(err, redis.ErrClosed) {
		return store.ErrClosed
	}
	return Clip(err)
}

// maxErrorText is how many bytes of an error are shown.
const maxErrorText = 300

// Clip shortens the text of an error, because Redis chooses it. It is still the same error.
func Clip(err error) error {
	if err == nil || len(err.Error()) <= maxErrorText || errors.As(err, new(advisedError)) {
		return err
	}
	return clippedError{err}
}

type clippedError struct{ error }

func (e clippedError) Error() string { return e.error.Error()[:maxErrorText] + "..." }
func (e clippedError) Unwrap() error { return e.error }

// mistakes are what a server answers that is another one than the config says, and what to do. A mistake has each
// of the parts of its text.
var mistakes = []struct {
	parts  []string
	advice *advice.Advice
}{
	{[]string{"cluster support disabled"}, advice.LeaveCluster},
	{[]string{"not allowed in cluster mode"}, advice.UseCluster},
	{[]string{"unknown command", "sentinel"}, advice.NoSentinel},
	{[]string{"unknown command", "cluster"}, advice.UseSentinel},
	{[]string{"unknown command", "eval"}, advice.UseSentinel},
	{[]string{"unknown command", "select"}, advice.UseSentinel},
	{[]string{"DB index is out of range"}, advice.UseDB},
	{[]string{"No permissions to access database"}, advice.GiveDB},
}

// Advise adds to the error of a server what to do, if the server is another one than the config says, or the user lacks a
// right. Single says that it is to be one Redis, without a Cluster.
func Advise(err error, single bool) error {
	var said redis.Error
	if !errors.As(err, &said) || errors.As(err, new(advisedError)) {
		return err
	}
	if single && Failure(err) == store.FailureCluster {
		return WithAdvice(err, advice.UseCluster.With())
	}
	for _, m := range mistakes {
		fits := true
		for _, part := range m.parts {
			fits = fits && strings.Contains(said.Error(), part)
		}
		if fits {
			return WithAdvice(err, m.advice.With())
		}
	}
	if LacksRight(err) {
		return WithAdvice(err, missing(said.Error()))
	}
	return err
}

// forbidden finds the command in what Redis says to a user who may not run it. Before Redis 7.2 it is not there if a script
// meets the error.
var forbidden = regexp.MustCompile(`run the '([^']+)' command`)

// missing returns what to do about a right that the user lacks.
func missing(said string) advice.Text {
	if found := forbidden.FindStringSubmatch(said); found != nil {
		return advice.GiveRights.With("+" + found[1])
	}
	if strings.Contains(said, " key") {
		return advice.GiveKeys.With()
	}
	return advice.GiveRights.With("the one that ACL LOG names")
}

// WithAdvice adds to an error what to do.
func WithAdvice(err error, what advice.Text) error { return advisedError{Clip(err), what} }

type advisedError struct {
	error
	advice advice.Text
}

func (e advisedError) Error() string { return e.error.Error() + "; " + e.advice.String() }
func (e advisedError) Unwrap() error { return e.error }
