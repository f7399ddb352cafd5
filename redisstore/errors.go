package redisstore

import (
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// reply is what an error that Redis answered tells.
type reply struct {
	kind string
	// write says that a script can meet it too, but no later than with its first write.
	write bool
}

// replies are sorted by the word that they begin with. With each of them Redis says that
// it has not carried a command out.
var replies = map[string]reply{
	"LOADING":     {kind: store.FailureLoading},
	"MASTERDOWN":  {kind: store.FailureLoading},
	"READONLY":    {kind: store.FailureReadonly, write: true},
	"OOM":         {kind: store.FailureOOM, write: true},
	"NOAUTH":      {kind: store.FailureAuth},
	"WRONGPASS":   {kind: store.FailureAuth},
	"NOPERM":      {kind: store.FailureAuth},
	"CLUSTERDOWN": {kind: store.FailureCluster},
	"MOVED":       {kind: store.FailureCluster},
	"ASK":         {kind: store.FailureCluster},
	"TRYAGAIN":    {kind: store.FailureCluster},
	"CROSSSLOT":   {kind: store.FailureCluster},
	"MISCONF":     {kind: store.FailureOther, write: true},
	"NOREPLICAS":  {kind: store.FailureOther, write: true},
	"NOSCRIPT":    {kind: store.FailureOther},
	"BUSY":        {kind: store.FailureOther},
}

// In errors that begin with ERR: what Redis says to those who log in wrongly, what a
// script meets that lacks a right, and with all else that a script meets.
var (
	loginTexts  = []string{"ERR invalid password", "without any password configured"}
	rightsTexts = []string{
		"The user executing the script can't", // until Redis 7.0
		"ERR ACL failure in script",           // since, and Valkey
	}
	scriptTexts = []string{"ERR Error running script", "@user_script", " script: "}
)

// crowded is what Redis says, with ERR, to a connection that is one too many.
const crowded = "ERR max number of clients"

// failure is an error that the store returns.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// Failure returns the kind of the error, see [store.Failure].
func (f failure) Failure() string { return kind(f.error) }

// kind is the kind of an error: as Redis says, or as any store's error is sorted.
func kind(err error) string {
	if errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrFull) {
		return store.Failure(err)
	}
	var said redis.Error
	switch {
	case errors.As(err, &said):
		return kindOfReply(said.Error())
	case errors.Is(err, redis.ErrPoolTimeout):
		return store.FailureTimeout
	}
	return store.Failure(err)
}

// kindOfReply sorts an error that Redis answered.
func kindOfReply(text string) string {
	if r, ok := readReply(text); ok {
		return r.kind
	}
	if contains(text, loginTexts) || contains(text, rightsTexts) {
		return store.FailureAuth
	}
	return store.FailureOther
}

// readReply finds the word. Up to version 6 what a script meets stands within a text of
// its own: "ERR Error running script (...): -OOM command ...".
func readReply(text string) (r reply, ok bool) {
	first, rest, _ := strings.Cut(text, " ")
	if r, ok = replies[strings.TrimPrefix(first, "-")]; ok || !fromScript(text) {
		return r, ok
	}
	for word := range strings.FieldsSeq(rest) {
		if code, dashed := strings.CutPrefix(word, "-"); dashed {
			if r, ok = replies[code]; ok {
				return r, true
			}
		}
	}
	return reply{}, false
}

// fromScript tells whether an error was met by a script that ran.
func fromScript(text string) bool {
	return contains(text, scriptTexts) || contains(text, rightsTexts)
}

// contains tells whether any of the parts is in a text.
func contains(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

// refusesToWrite reports whether a call failed at its first write, so that nothing was
// written.
func refusesToWrite(err error) bool {
	if err == nil {
		return false
	}
	var said redis.Error // which is allocated
	if !errors.As(err, &said) {
		return false
	}
	r, _ := readReply(said.Error())
	return r.write
}

// works reports whether an error proves that Redis answers and runs scripts: it cannot write,
// or not this key, which may be of a slot that no node has, or the script failed. Everything
// else that is no such proof is a failure: Redis gave no answer, or one that holds for every
// call (LOADING, MASTERDOWN, BUSY, a whole Cluster that is down, a password or a right that
// is missing, too many clients).
func works(err error) bool {
	var said redis.Error
	if !errors.As(err, &said) {
		return false
	}
	text := said.Error()
	r, _ := readReply(text)
	return r.write || fromScript(text) || r.kind == store.FailureCluster && !cutOff(err)
}

// unsentError is in the errors of calls that were not made: there was nobody to send
// them to.
type unsentError struct{ error }

func (e unsentError) Unwrap() error { return e.error }

// mayHaveRun tells whether the script may have been carried out, as a whole or in part,
// although a call of it has failed. Where it returns false, the call can be repeated:
// nothing was sent, or Redis said that it did not begin, or that it stopped before it
// had written anything. Whatever is not known to be proof is none: a script that stops
// half-way is not rolled back.
func mayHaveRun(err error) bool {
	switch {
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrClosed):
		return false
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted), errors.As(err, new(unsentError)), isUnwritten(err):
		return false
	}
	var said redis.Error
	if !errors.As(err, &said) {
		return true // a broken connection, a timeout, a reply that makes no sense
	}
	text := said.Error()
	r, known := readReply(text)
	if fromScript(text) {
		return !r.write
	}
	return !known && !contains(text, loginTexts) && !strings.HasPrefix(text, crowded)
}
