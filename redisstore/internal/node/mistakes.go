package node

import (
	"errors"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/store"
)

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
