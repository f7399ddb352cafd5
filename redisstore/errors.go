package redisstore

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
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

// words are what Redis's own errors begin with.
var words = map[string]string{
	"LOADING":     KindLoading,
	"MASTERDOWN":  KindLoading,
	"READONLY":    KindReadonly,
	"OOM":         KindOOM,
	"NOAUTH":      KindAuth,
	"WRONGPASS":   KindAuth,
	"NOPERM":      KindAuth,
	"CLUSTERDOWN": KindCluster,
	"MOVED":       KindCluster,
	"ASK":         KindCluster,
	"TRYAGAIN":    KindCluster,
	"CROSSSLOT":   KindCluster,
}

// authTexts are in errors about rights that begin with ERR.
var authTexts = []string{
	"ERR invalid password", "without any password configured",
	"The user executing the script can't", // until Redis 7.0
	"ERR ACL failure in script",           // since, and Valkey
}

// Kind sorts an error of a store, whichever it is, for statistics.
func Kind(err error) string {
	if errors.Is(err, store.ErrUnavailable) {
		return KindOpen
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

// kindOfReply reads an error that Redis answered. Up to version 6 what a script meets
// stands within a text of its own: "ERR Error running script (...): -OOM command ...".
func kindOfReply(text string) string {
	first, rest, _ := strings.Cut(text, " ")
	if kind, ok := words[strings.TrimPrefix(first, "-")]; ok {
		return kind
	}
	for word := range strings.FieldsSeq(rest) {
		if code, ok := strings.CutPrefix(word, "-"); ok {
			if kind, ok := words[code]; ok {
				return kind
			}
		}
	}
	for _, part := range authTexts {
		if strings.Contains(text, part) {
			return KindAuth
		}
	}
	return KindOther
}
