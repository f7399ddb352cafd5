package topology

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// sentinelInterval is how often the Sentinels are asked although all goes well: a
	// master that was replaced may keep answering clients that are cut off with it.
	sentinelInterval = time.Second

	// sentinelPatience is how long other Sentinels have after the first answer, which may come
	// from one that does not know of a failover.
	sentinelPatience = 100 * time.Millisecond

	// listenTime is how long a Sentinel may say nothing before a new connection is made to listen
	// to it. The old one may be dead.
	listenTime = 30 * time.Second
)

// Sentinel is a master that Sentinels watch, and replace when it is down. All Sentinels
// are asked at once, so that one which hangs, perhaps with the master, delays nothing.
type Sentinel struct {
	nodes
	*discovery
	name      string
	sentinels []*redis.Client
	master    atomic.Pointer[node.Node]
	epoch     int64         // of the master; only refresh uses it
	quiet     time.Duration // how long a Sentinel may say nothing, see listenTime
}

// NewSentinel returns the topology of the master that Sentinels call by a name.
func NewSentinel(name string, sentinels []*redis.Options, config *node.Config, logger func() *zap.Logger) *Sentinel {
	s := &Sentinel{nodes: nodes{config: config}, name: name, quiet: listenTime}
	s.discovery = newDiscovery(sentinelInterval, config.Timeout, logger, s.refresh)
	for _, o := range sentinels {
		o.PoolSize, o.ReadTimeout = 2, refreshTimeout
		client := redis.NewClient(o)
		s.sentinels = append(s.sentinels, client)
		s.beside = append(s.beside, func(ctx context.Context) { s.listen(ctx, client) })
	}
	return s
}

// Slot implements [Topology].
func (s *Sentinel) Slot(string) uint16 { return 0 }

// Node implements [Topology].
func (s *Sentinel) Node(ctx context.Context, _ uint16) (*node.Node, error) {
	if master := s.master.Load(); master != nil {
		return master, nil
	}
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	return s.master.Load(), nil
}

// Redirect implements [Topology]. When a server reports that it is no longer the master, the
// new master is not known yet.
func (s *Sentinel) Redirect(_ context.Context, _ *node.Node, _ uint16, err error, _ int) (*node.Node, bool, error) {
	return nil, false, err
}

// Masters implements [Topology].
func (s *Sentinel) Masters() []*node.Node {
	if master := s.master.Load(); master != nil {
		return []*node.Node{master}
	}
	return nil
}

// Close implements [Topology].
func (s *Sentinel) Close() error {
	return s.discovery.close(func() error {
		errs := []error{s.nodes.close()}
		for _, client := range s.sentinels {
			if err := client.Close(); !errors.Is(err, redis.ErrClosed) {
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	})
}

// Poll sets how often the Sentinels are asked, and how long they may say nothing. It is for tests, before
// the first call.
func (s *Sentinel) Poll(every time.Duration) { s.every, s.quiet = every, every }

// listen has the Sentinels asked as soon as one of them says that there is another master, and when
// it can be heard again. What it says is not believed before that.
func (s *Sentinel) listen(ctx context.Context, client *redis.Client) {
	for ctx.Err() == nil {
		heard := client.Subscribe(ctx)
		err := heard.Subscribe(ctx, "+switch-master")
		for err == nil && ctx.Err() == nil { // a connection that was made while the client was closed stays
			if _, err = heard.ReceiveTimeout(ctx, s.quiet); err == nil {
				s.ReportFailure()
			}
		}
		_ = heard.Close()
		_ = pause(ctx, sentinelInterval)
	}
}

// report is what a Sentinel says about the master.
type report struct {
	address string
	epoch   int64
}

// refresh asks all Sentinels, and believes the one that knows of the latest failover.
func (s *Sentinel) refresh() error {
	questions := make([]question[report], len(s.sentinels))
	for i, client := range s.sentinels {
		questions[i] = question[report]{client.Options().Addr, func(ctx context.Context) (report, error) { return s.locate(ctx, client) }}
	}
	reports, errs := survey(s.discovery, sentinelPatience, questions)
	if len(reports) == 0 {
		err := fmt.Errorf("no sentinel answers where the master %q is: %w", s.name, errors.Join(errs...))
		switch {
		case errors.As(err, new(unwatched)):
			return node.WithAdvice(err, advice.NameMaster)
		case node.Failure(err) == store.FailureAuth:
			return node.WithAdvice(err, advice.FindSentinel)
		}
		return err
	}
	best := slices.MaxFunc(reports, func(a, b report) int { return cmp.Compare(a.epoch, b.epoch) })
	// A minority that knows less than this process is behind. A majority was set up again.
	if best.epoch < s.epoch && 2*len(reports) <= len(s.sentinels) {
		return nil
	}
	master, err := s.at(best.address)
	if err != nil {
		return err
	}
	s.epoch = best.epoch
	if s.master.Swap(master) != master {
		master.Connect() // so the first decisions do not wait for it
	}
	s.retire()
	return nil
}

// locate asks a Sentinel for the address of the master.
func (s *Sentinel) locate(ctx context.Context, client *redis.Client) (report, error) {
	address := redis.NewStringSliceCmd(ctx, "sentinel", "get-master-addr-by-name", s.name)
	about := redis.NewMapStringStringCmd(ctx, "sentinel", "master", s.name)
	_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
		return errors.Join(p.Process(ctx, address), p.Process(ctx, about))
	})
	switch {
	case errors.Is(err, redis.Nil):
		return report{}, unwatched{s.name}
	case err != nil:
		return report{}, err
	case len(address.Val()) != 2:
		return report{}, errors.New("it answers no address")
	}
	epoch, _ := strconv.ParseInt(about.Val()["config-epoch"], 10, 64)
	named, err := name{host: address.Val()[0], port: address.Val()[1]}.address(client.Options().Addr)
	return report{address: named, epoch: epoch}, err
}

// unwatched is the error of a Sentinel that does not know a master by this name.
type unwatched struct{ master string }

func (u unwatched) Error() string { return fmt.Sprintf("it watches no master %q", u.master) }
