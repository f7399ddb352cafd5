package topology

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
)

const (
	// clusterInterval is how often the nodes are asked which node has which slots if no call
	// fails. In between, nodes redirect calls for slots that they do not have.
	clusterInterval = 30 * time.Second

	// maxHops is how often a call follows the nodes' directions.
	maxHops = 5

	// hopPause is the pause before a call is repeated that no node took, and longer each time.
	hopPause = 5 * time.Millisecond
)

// NewCluster returns the topology of a Cluster, some nodes of which are at these addresses.
func NewCluster(seeds []string, config *node.Config, logger func() *zap.Logger) *Topology {
	t := newTopology(Slots, config)
	t.logger, t.every = logger, clusterInterval
	t.questions = func() (questions []question, err error) {
		for _, seed := range seeds {
			if _, err := t.at(seed); err != nil {
				return nil, err
			}
		}
		for _, n := range t.all() {
			ask := func(ctx context.Context) (report, error) { return t.consult(ctx, n) }
			questions = append(questions, question{n.Address, ask})
		}
		return questions, nil
	}
	t.explain = func(err error) error {
		return fmt.Errorf("no node of the cluster answers which node has which slots: %w", err)
	}
	return t
}

// consult asks a node of a Cluster which node has which slots.
func (t *Topology) consult(ctx context.Context, n *node.Node) (report, error) {
	answer, epoch, err := n.Slots(ctx)
	if err != nil {
		return report{}, err
	}
	ranges, err := readSlots(n.Address, answer)
	for _, r := range ranges {
		if r.instead != "" {
			t.config.Instead.Store(r.address, r.instead)
		}
	}
	return report{epoch, ranges}, err
}

// Redirect says where a call is to be made again that failed with an error, if the node it came from refused it because
// another node is to be asked, or the same one a moment later. Nothing has been carried out of such a call. Asking is
// for a slot that is about to become that node's own. Without such a node it returns the error that is left. Hop
// counts the times that the call was made, from 1. One Redis that has all keys has no other: if Sentinels name
// another master, that is not known yet.
func (t *Topology) Redirect(ctx context.Context, from *node.Node, slot uint16, err error, hop int) (to *node.Node, asking bool, _ error) {
	if len(t.table) == 1 || !node.Elsewhere(err) {
		return nil, false, err
	}
	t.ReportFailure()
	moved, isMoved := redis.IsMovedError(err)
	asked, isAsk := redis.IsAskError(err)
	if hop > maxHops {
		if (isMoved || isAsk) && readName(moved+asked).unknown() {
			err = node.WithAdvice(err, advice.NameHosts.With())
		}
		return nil, false, err
	}
	// Where two nodes name each other for a moment, at the end of a slot's move, all hops would take a millisecond.
	if (isMoved && hop > 1 || !isMoved && !isAsk) && pause(ctx, time.Duration(hop)*hopPause) != nil {
		return nil, false, err
	}
	var lost error
	sure := false
	if isMoved || isAsk {
		to, sure, lost = t.sentTo(from, slot, moved+asked, hop)
	} else { // a node that no longer belongs, a Cluster that is down, or keys of a slot that moves
		to, lost = t.Node(ctx, slot)
	}
	if lost != nil {
		return nil, false, node.Unsent(lost)
	}
	if isMoved && sure {
		t.table[slot].Store(to)
	}
	return to, isAsk, nil
}
