package redisstore

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Examine implements [store.Observed].
func (s *operators) Examine(ctx context.Context) store.Examination {
	found := store.Examination{Timeout: s.timeout}
	masters, err := s.masters(ctx)
	if err != nil {
		found.Servers = []store.Condition{s.troubled(store.Condition{}, err)}
		return found
	}
	found.Servers = make([]store.Condition, len(masters))
	var group sync.WaitGroup
	for i, n := range masters {
		group.Go(func() {
			patience, cancel := context.WithTimeout(ctx, max(mostSilence, s.timeout))
			defer cancel()
			c, err := s.look(ctx, patience, n)
			if err != nil {
				c = s.troubled(c, err)
			}
			found.Servers[i] = c
		})
	}
	group.Wait()
	return found
}

// masters returns the servers that hold states.
func (s *operators) masters(ctx context.Context) ([]*node.Node, error) {
	if masters := s.servers.Masters(); len(masters) > 0 {
		return masters, nil
	}
	n, err := s.servers.Node(ctx, 0) // they are not discovered yet
	if err != nil {
		return nil, err
	}
	return []*node.Node{n}, nil
}

// mostSilence is how long a server may take for the first answer, unless requests wait longer for it.
const mostSilence = 2500 * time.Millisecond

// look returns the condition of a server, or why it does not decide. For the first answer there may be less time.
func (s *operators) look(ctx, patience context.Context, n *node.Node) (c store.Condition, err error) {
	c.Address = n.Address
	first, err := n.Ask(patience) // which may have to make a connection
	if err != nil {
		return c, err
	}
	ahead, took, err := n.Clock(ctx)
	if err != nil {
		return c, err
	}
	c.ClockAhead, c.ClockTook = ahead, took
	c.RoundTrip = max(min(first, took), n.Distance()) // this machine may be busy for one of them, and the distance grows slowly
	if fields, err := n.Info(ctx); err == nil {
		describe(&c, fields)
	}
	return c, cmp.Or(n.Charges(ctx), n.Whole(ctx))
}

// describe adds what INFO says.
func describe(c *store.Condition, fields map[string]string) {
	number := func(field string) int64 {
		n, _ := strconv.ParseInt(fields[field], 10, 64)
		return n
	}
	c.Described, c.Version = true, versionOf(fields)
	c.Evicts, c.Evicted = fields["maxmemory_policy"], number("evicted_keys")
	c.Memory, c.MaxMemory = number("used_memory"), number("maxmemory")
}

// troubled adds to a condition why the server does not decide.
func (s *operators) troubled(c store.Condition, err error) store.Condition {
	c.Trouble, c.Err = s.trouble(err), s.explain(err)
	return c
}

func (s *operators) trouble(err error) string {
	var (
		notTLS    tls.RecordHeaderError
		alert     tls.AlertError
		untrusted *tls.CertificateVerificationError
		unknown   x509.UnknownAuthorityError
		wrongName x509.HostnameError
	)
	switch {
	case errors.As(err, &notTLS), errors.As(err, &alert), errors.As(err, &untrusted), errors.As(err, &unknown), errors.As(err, &wrongName),
		s.wantsTLS(err), strings.Contains(err.Error(), "remote error: tls: "):
		return store.TroubleTLS
	}
	kind, said := node.Failure(err), redis.Error(nil)
	if errors.As(err, &said) { // also if the servers could not be found
		kind = node.Failure(said)
	}
	switch kind {
	case store.FailureAuth:
		if node.LacksRight(err) {
			return store.TroubleRights
		}
		return store.TroubleLogin
	case store.FailureReadonly:
		return store.TroubleReplica
	case store.FailureOOM:
		return store.TroubleMemory
	}
	if _, fix := advice.Split(err.Error()); fix != (advice.Text{}) {
		return store.TroubleServer
	}
	return store.TroubleAnswer
}

var _ store.Shared = (*Store)(nil)

// wantsTLS reports whether the server seems to expect TLS: it hangs up on a client without, and has never answered.
func (s *operators) wantsTLS(err error) bool { return hungUp(err) && !s.encrypted && !s.hasAnswered() }

// hasAnswered reports whether a server has answered this store.
func (s *operators) hasAnswered() bool {
	return slices.ContainsFunc(s.servers.Masters(), func(n *node.Node) bool { return n.Distance() > 0 })
}

// hungUp reports whether the server has closed the connection at once, as one that expects TLS does.
func hungUp(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) }
