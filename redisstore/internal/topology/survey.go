package topology

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// A survey asks all servers which of them has which slots, and believes the one that knows of the latest failover: one
// that is cut off from the others names forever what it knew before. Surveys are made from the first call on, at
// intervals, and soon after a call has failed.

const (
	// surveyTimeout bounds what a survey asks of a server.
	surveyTimeout = time.Second

	// surveyPause is the pause between two surveys, however many calls fail.
	surveyPause = 100 * time.Millisecond

	// patience is how long other servers have after the first answer. A server that hangs delays nothing for longer.
	patience = 100 * time.Millisecond
)

// question is what a server is asked.
type question struct {
	address string
	ask     func(ctx context.Context) (report, error)
}

// report is what a server answers.
type report struct {
	epoch  int64 // of the latest failover that it knows
	ranges []slotRange
}

// ReportFailure says that a node failed: another may have taken its place, so there is a survey soon.
func (t *Topology) ReportFailure() {
	select {
	case t.triggered <- struct{}{}:
	default:
	}
}

// wait returns when the servers are known, or with the reason why they are not.
func (t *Topology) wait(ctx context.Context) error {
	t.start.Do(func() { t.running.Go(t.run) })
	select {
	case <-t.found:
		return nil
	default:
	}
	t.ReportFailure()
	if err := t.last(); err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err) // the next survey may take long
	}
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	select {
	case <-t.found:
		return nil
	case <-ctx.Done():
		return cmp.Or(t.last(), ctx.Err())
	}
}

// last is why the last survey failed.
func (t *Topology) last() error { return *t.failed.Load() }

func (t *Topology) run() {
	for known := false; ; {
		err := node.Clip(node.Advise(t.survey(known), false))
		t.failed.Store(&err)
		if err == nil && !known {
			known = true
			close(t.found)
		}
		if pause(t.quitting, surveyPause) != nil {
			return
		}
		next := t.every
		if !t.complete {
			next = min(next, silentAfter)
		}
		select {
		case <-t.triggered:
		case <-time.After(next - surveyPause):
		case <-t.quitting.Done():
			return
		}
	}
}

// survey makes one.
func (t *Topology) survey(known bool) error {
	questions, err := t.questions()
	if err != nil {
		return err
	}
	t.keep(questions)
	late := patience
	if !known {
		late = min(late, t.timeout/5) // requests wait
	}
	reports, errs := t.ask(questions, late)
	t.complete = len(reports) == len(questions)
	if len(reports) == 0 {
		return t.explain(errors.Join(errs...))
	}
	if !known && len(reports)+len(errs) < len(questions) {
		t.ReportFailure() // the next survey has more patience
	}
	best := slices.MaxFunc(reports, func(a, b report) int { return cmp.Compare(a.epoch, b.epoch) })
	// A minority that knows less than this process is behind. A majority was set up again.
	if best.epoch < t.epoch && 2*len(reports) <= len(questions) {
		return nil
	}
	t.epoch = best.epoch
	return t.write(best.ranges)
}

// ask asks all servers at once. When one has answered, the others have some time; what they answer later only shows that
// they are not silent.
func (t *Topology) ask(questions []question, late time.Duration) (reports []report, errs []error) {
	type result struct {
		from   string
		report report
		err    error
	}
	results := make(chan result, len(questions))
	for _, q := range questions {
		t.running.Go(func() {
			ctx, cancel := context.WithTimeout(t.quitting, surveyTimeout)
			defer cancel()
			r, err := q.ask(ctx)
			if t.quitting.Err() == nil {
				t.note(q.address, err)
			}
			results <- result{q.address, r, err}
		})
	}
	var end <-chan time.Time
	for range questions {
		select {
		case r := <-results:
			if r.err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", r.from, r.err))
				continue
			}
			reports = append(reports, r.report)
			if end == nil {
				end = time.After(late)
			}
		case <-end:
			return reports, errs
		case <-t.quitting.Done():
			return reports, append(errs, store.ErrClosed)
		}
	}
	return reports, errs
}

// write writes the table. What the report leaves out stays as it is.
func (t *Topology) write(ranges []slotRange) error {
	for _, r := range ranges {
		n, err := t.at(r.address)
		if err != nil {
			return err
		}
		if t.take(n, r.first, r.last) {
			n.Connect() // so the first decisions do not wait for it
		}
	}
	t.retire()
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// silentAfter is how long after its first failure a server counts as silent when it fails again. It is asked again
// so soon.
const silentAfter = 3 * time.Second

// silences are of the servers that did not say, when they were last asked, which of them has which slots.
type silences struct {
	logger func() *zap.Logger

	mu sync.Mutex
	of map[string]silence // by address
}

// silence counts once it has lasted for some time, and then was told.
type silence struct {
	store.Silence
	told bool
}

// keep forgets the servers that are no longer asked.
func (s *silences) keep(asked []question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.of, func(address string, _ silence) bool {
		return !slices.ContainsFunc(asked, func(q question) bool { return q.address == address })
	})
}

// note records what has come of asking a server.
func (s *silences) note(address string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, was := s.of[address]
	if err == nil {
		if delete(s.of, address); one.told {
			s.logger().Info("a server of the rate limit store answers again",
				zap.String("address", address), zap.Duration("after", time.Since(one.Since)))
		}
		return
	}
	if !was {
		one.Silence = store.Silence{Address: address, Since: time.Now()}
	}
	one.Err = node.Clip(node.Advise(err, false))
	if !one.told && time.Since(one.Since) >= silentAfter {
		one.told = true
		s.logger().Warn("a server of the rate limit store is silent: requests are decided without it, but a failover may need it",
			zap.String("address", address), zap.Error(one.Err))
	}
	s.of[address] = one
}

// Silent returns the servers that are silent, by address.
func (s *silences) Silent() (all []store.Silence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.of {
		if one.told {
			all = append(all, one.Silence)
		}
	}
	slices.SortFunc(all, func(a, b store.Silence) int { return strings.Compare(a.Address, b.Address) })
	return all
}
