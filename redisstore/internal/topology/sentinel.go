package topology

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// sentinelInterval is how often the Sentinels are asked although all goes well: a master that was replaced may keep
// answering clients.
const sentinelInterval = time.Second

// NewSentinel returns the topology of the master that Sentinels call by a name.
func NewSentinel(name string, sentinels []*redis.Options, config *node.Config, logger func() *zap.Logger) *Topology {
	t := newTopology(1, config)
	t.logger, t.every = logger, sentinelInterval
	var questions []question
	for _, o := range sentinels {
		o.PoolSize, o.ReadTimeout = 2, surveyTimeout
		client := redis.NewClient(o)
		t.sentinels = append(t.sentinels, client)
		ask := func(ctx context.Context) (report, error) { return locate(ctx, client, name) }
		questions = append(questions, question{o.Addr, ask})
	}
	t.questions = func() ([]question, error) { return questions, nil }
	t.explain = func(err error) error {
		err = fmt.Errorf("no sentinel answers where the master %q is: %w", name, err)
		switch {
		case errors.As(err, new(unwatched)):
			return node.WithAdvice(err, advice.NameMaster.With())
		case node.Failure(err) == store.FailureAuth:
			return node.WithAdvice(err, advice.FindSentinel.With())
		}
		return err
	}
	return t
}

// locate asks a Sentinel for the address of the master, which has the one slot.
func locate(ctx context.Context, client *redis.Client, master string) (report, error) {
	address := redis.NewStringSliceCmd(ctx, "sentinel", "get-master-addr-by-name", master)
	about := redis.NewMapStringStringCmd(ctx, "sentinel", "master", master)
	_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
		return errors.Join(p.Process(ctx, address), p.Process(ctx, about))
	})
	switch {
	case errors.Is(err, redis.Nil):
		return report{}, unwatched{master}
	case err != nil:
		return report{}, err
	case len(address.Val()) != 2:
		return report{}, errors.New("it answers no address")
	}
	epoch, _ := strconv.ParseInt(about.Val()["config-epoch"], 10, 64)
	named, err := name{host: address.Val()[0], port: address.Val()[1]}.address(client.Options().Addr)
	return report{epoch, []slotRange{{address: named}}}, err
}

// unwatched is the error of a Sentinel that does not know a master by this name.
type unwatched struct{ master string }

func (u unwatched) Error() string { return fmt.Sprintf("it watches no master %q", u.master) }
