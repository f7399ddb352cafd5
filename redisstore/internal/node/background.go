package node

import (
	"context"
	"sync"
	"time"
)

// minBackground is how long Redis may take at least for a call for which no caller waits.
const minBackground = time.Second

// background returns a context for such a call: what nobody waits for has at least as much time as what somebody
// does, because an adjustment without an answer is given up.
func (n *Node) background(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, max(minBackground, n.config.Timeout))
}

// DoAll makes one call for requests whose callers do not wait. Each request gets its error. Asking is that of Do.
func (n *Node) DoAll(ctx context.Context, requests []*Request, asking bool) {
	c := newCall()
	defer c.free()
	for _, r := range requests {
		r.again(asking)
		c.add(r)
	}
	err := n.answers(ctx)
	if err == nil {
		ctx, cancel := n.background(ctx)
		defer cancel()
		err = n.batcher.send(ctx, c)
	}
	var alone sync.WaitGroup
	for _, r := range requests {
		switch {
		case r.Err == nil:
			r.Err = err
		case r.migrating(r.Err):
			alone.Go(func() { n.DoAll(ctx, []*Request{r}, asking) })
		}
	}
	alone.Wait()
}

// answers finds out, if the last call has failed, whether Redis answers one that asks for
// nothing: a Redis that hangs may carry out what it gets, and not say so. So only those
// adjustments are in doubt that were under way when it began to hang. The breaker does not
// hear of it, because a Redis that answers may be unable to charge.
func (n *Node) answers(ctx context.Context) error {
	if !n.breaker.failing() {
		return nil
	}
	if n.breaker.open.Load() && !n.breaker.due() {
		return *n.breaker.cause.Load()
	}
	ctx, cancel := n.background(ctx)
	defer cancel()
	if _, err := n.Ask(ctx); err != nil {
		return Unsent(err)
	}
	return nil
}
