package node

import (
	"context"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
)

// A node of a Cluster runs a script only for keys of one slot. So a call to a node is
// sorted by slot again: one script call for each, all in one pipeline. What the node
// answers ends each request, also if the answer is that another node is to be asked. The
// caller follows that, through the other node's batcher: no other request waits for it, and
// it is not held against this node.

// sendBySlot makes a call, unless the node is known not to answer. A node that has answered
// the requests of one slot are well, also if one of them sends elsewhere.
func (n *Node) sendBySlot(ctx context.Context, c *call) error {
	return n.breaker.run(func() error {
		n.evaluateBySlot(ctx, c)
		for _, r := range c.requests {
			if r.Err == nil || works(r.Err) {
				return nil
			}
		}
		return c.requests[0].Err
	})
}

// class says which requests can share a script call in a Cluster: those of one slot. While that migrates, a request may
// have to be alone.
type class struct {
	slot   uint16
	asking bool
	alone  *Request
}

func classOf(r *Request) class {
	c := class{slot: r.Slot, asking: r.asking}
	if r.single {
		c.alone = r
	}
	return c
}

// evaluateBySlot runs the script once for each class of a call's requests, in one pipeline.
// Each request gets its own error.
func (n *Node) evaluateBySlot(ctx context.Context, c *call) {
	calls := []*call{c}
	if first := classOf(c.requests[0]); slices.ContainsFunc(c.requests, func(r *Request) bool { return classOf(r) != first }) {
		calls = byClass(c.requests)
		defer func() {
			for _, one := range calls {
				one.free()
			}
		}()
	}
	for _, one := range calls {
		for _, r := range one.requests {
			r.shared = len(one.requests) > 1
		}
	}
	if len(calls) == 1 {
		setErrors(c, n.evaluate(ctx, c.Batch, c.requests[0].asking))
		return
	}
	cmds, all := make([]*redis.StringCmd, len(calls)), make([]redis.Cmder, 0, len(calls))
	for i, one := range calls {
		if one.requests[0].asking {
			all = append(all, redis.NewCmd(ctx, "asking"))
		}
		cmds[i] = n.evalsha(ctx, one.Batch)
		all = append(all, cmds[i])
	}
	n.ProcessAll(ctx, all...)
	var again sync.WaitGroup
	for i, one := range calls {
		finish := func(err error) {
			setErrors(one, n.finish(ctx, one.Batch, cmds[i], err, one.requests[0].asking))
		}
		if err := n.told(cmds[i].Err()); err != nil {
			again.Go(func() { finish(err) }) // it may be sent once more
		} else {
			finish(nil)
		}
	}
	again.Wait()
}

// setErrors tells the requests of a call what happened to it. If all went well, each has its own
// error, if any.
func setErrors(c *call, err error) {
	if err == nil {
		return
	}
	for _, r := range c.requests {
		r.Err = err
	}
}

// byClass makes a call of the requests of each class, in their order.
func byClass(all []*Request) (calls []*call) {
	index := make(map[class]*call)
	for _, r := range all {
		name := classOf(r)
		c := index[name]
		if c == nil {
			c = newCall()
			index[name] = c
			calls = append(calls, c)
		}
		c.add(r)
	}
	return calls
}
