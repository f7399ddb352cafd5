package redisstore

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// maxHops is how often a call follows the nodes' directions.
	maxHops = 5

	// hopPause is before a call is repeated that no node would take.
	hopPause = 5 * time.Millisecond

	// isolated is in what a node says, with CLUSTERDOWN, that sees too few of the others. Of
	// a single slot without a node it says something else.
	isolated = "The cluster is down"
)

// elsewhere reports whether an error says that another node is to be asked, or the same one
// again in a moment. Then nothing has been carried out.
func elsewhere(err error) bool {
	_, moved := redis.IsMovedError(err)
	return moved || isAsk(err) || redis.IsClusterDownError(err) || errors.Is(err, store.ErrClosed) // a node that no longer belongs
}

func isAsk(err error) bool {
	_, ask := redis.IsAskError(err)
	return ask
}

// cutOff reports whether an error says that the node sees too few of the others.
func cutOff(err error) bool {
	return redis.IsClusterDownError(err) && strings.Contains(err.Error(), isolated)
}

// note remembers whether the node sees enough of the others.
func (l *lane) note(err error) {
	if is := cutOff(err); (is || err == nil) && l.cutOff.Load() != is {
		l.cutOff.Store(is)
	}
}

// follow repeats what a node has refused because the slot is elsewhere or on its way,
// where the nodes say, as long as ctx lasts. Nothing of that has been carried out.
func (c *cluster) follow(ctx context.Context, slot uint16, err error, again func(l *lane, asking bool) error) error {
	for hop := 1; err != nil && hop <= maxHops; hop++ {
		moved, isMoved := redis.IsMovedError(err)
		asked, isAsk := redis.IsAskError(err)
		closed := errors.Is(err, store.ErrClosed) // a node that no longer belongs
		if !isMoved && !isAsk && !closed && !redis.IsClusterDownError(err) {
			return err
		}
		c.suspect()
		var l *lane
		var lost error
		switch {
		case isMoved:
			if l, lost = c.to(c.complete(slot, moved)); lost == nil {
				c.table[slot].Store(l)
			}
		case isAsk:
			l, lost = c.to(c.complete(slot, asked))
		default:
			if pause(ctx, time.Duration(hop)*hopPause) != nil {
				return err
			}
			l, lost = c.lane(ctx, slot)
		}
		if lost != nil {
			return unsentError{lost}
		}
		err = again(l, isAsk)
	}
	return err
}

func (c *cluster) complete(slot uint16, address string) string {
	if from := c.table[slot].Load(); from != nil {
		return beside(from.address, address)
	}
	return address
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
