package redisstore

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// The kinds of errors: what to look for when Redis does not decide.
const (
	KindTimeout  = "timeout"  // no answer in time: frozen, overloaded, far away, or no connection free
	KindRefused  = "refused"  // nobody listens there
	KindNetwork  = "network"  // the connection broke, or could not be made otherwise
	KindLoading  = "loading"  // Redis is starting, or a replica has no master yet
	KindReadonly = "readonly" // what answers is a replica
	KindOOM      = "oom"      // maxmemory is reached and nothing may be evicted
	KindAuth     = "auth"     // password or rights
	KindCluster  = "cluster"  // the cluster is down, or its slots are moving
	KindOpen     = "open"     // not asked: the breaker is open
	KindOther    = "other"
)

// Kinds are all kinds there are.
func Kinds() []string {
	return []string{
		KindTimeout, KindRefused, KindNetwork, KindLoading, KindReadonly, KindOOM, KindAuth, KindCluster, KindOpen, KindOther,
	}
}

// reply is what an error that Redis answered tells.
type reply struct {
	kind string
	// write says that a script can meet it too, but no later than with its first write.
	write bool
}

// replies are sorted by the word that they begin with. With each of them Redis says that
// it has not carried a command out.
var replies = map[string]reply{
	"LOADING":     {kind: KindLoading},
	"MASTERDOWN":  {kind: KindLoading},
	"READONLY":    {kind: KindReadonly, write: true},
	"OOM":         {kind: KindOOM, write: true},
	"NOAUTH":      {kind: KindAuth},
	"WRONGPASS":   {kind: KindAuth},
	"NOPERM":      {kind: KindAuth},
	"CLUSTERDOWN": {kind: KindCluster},
	"MOVED":       {kind: KindCluster},
	"ASK":         {kind: KindCluster},
	"TRYAGAIN":    {kind: KindCluster},
	"CROSSSLOT":   {kind: KindCluster},
	"MISCONF":     {kind: KindOther, write: true},
	"NOREPLICAS":  {kind: KindOther, write: true},
	"NOSCRIPT":    {kind: KindOther},
	"BUSY":        {kind: KindOther},
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

// Kind sorts an error of a store, whichever it is, for statistics.
func Kind(err error) string {
	switch {
	case errors.Is(err, store.ErrUnavailable):
		return KindOpen
	case errors.Is(err, store.ErrFull):
		return KindOOM
	}
	var said redis.Error
	if errors.As(err, &said) {
		return kindOfReply(said.Error())
	}
	var netError net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, redis.ErrPoolTimeout):
		return KindTimeout
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT):
		return KindRefused // a socket's file that is not there is a Redis that is not there
	case errors.As(err, &netError):
		if netError.Timeout() {
			return KindTimeout
		}
		return KindNetwork
	case errors.Is(err, net.ErrClosed), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return KindNetwork
	}
	return KindOther
}

// kindOfReply sorts an error that Redis answered.
func kindOfReply(text string) string {
	if r, ok := readReply(text); ok {
		return r.kind
	}
	if contains(text, loginTexts) || contains(text, rightsTexts) {
		return KindAuth
	}
	return KindOther
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
	return r.write || fromScript(text) || r.kind == KindCluster && !cutOff(err)
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
