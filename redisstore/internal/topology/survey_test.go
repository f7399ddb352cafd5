package topology

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
)

// panel are servers that are asked by surveys, and answer as a test wants.
type panel struct {
	*Topology
	answers map[string]func(ctx context.Context) error // of those that are asked
	lines   *observer.ObservedLogs
}

// newPanel starts to ask some servers, which answer at once.
func newPanel(t *testing.T, every time.Duration, addresses ...string) *panel {
	core, lines := observer.New(zapcore.InfoLevel)
	p := &panel{newTopology(1, &node.Config{Timeout: time.Second}), make(map[string]func(context.Context) error), lines}
	p.every, p.logger = every, func() *zap.Logger { return zap.New(core) }
	for _, address := range addresses {
		p.answers[address] = well
	}
	p.explain = func(err error) error { return err }
	p.questions = func() (questions []question, _ error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for address, answer := range p.answers {
			questions = append(questions, question{address, func(ctx context.Context) (report, error) { return report{}, answer(ctx) }})
		}
		return questions, nil
	}
	if err := p.wait(context.Background()); err != nil {
		t.Fatal(err)
	}
	p.ReportFailure() // which wait has done, unless the answers came before it looked
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// will has a server answer so from now on; nil: it is no longer asked.
func (p *panel) will(address string, answer func(ctx context.Context) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answers[address] = answer; answer == nil {
		delete(p.answers, address)
	}
}

func well(context.Context) error { return nil }

func broken(context.Context) error { return errors.New("broken") }

// hung answers nothing until it is asked no longer.
func hung(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// slow answers after the patience.
func slow(context.Context) error {
	time.Sleep(500 * time.Millisecond)
	return nil
}

// told returns the lines of the log so far, and who is silent.
func (p *panel) told() string {
	var all []string
	for _, l := range p.lines.All() {
		address := l.ContextMap()["address"]
		switch {
		case strings.HasSuffix(l.Message, "answers again"):
			all = append(all, fmt.Sprintf("%v answers", address))
		case l.Level == zapcore.WarnLevel:
			all = append(all, fmt.Sprintf("%v silent", address))
		}
	}
	for _, s := range p.Silent() {
		all = append(all, fmt.Sprintf("%s: %v for %v", s.Address, s.Err, time.Since(s.Since).Round(time.Second)))
	}
	return strings.Join(all, ", ")
}

func (p *panel) expect(t *testing.T, when, want string) {
	t.Helper()
	synctest.Wait()
	if got := p.told(); got != want {
		t.Errorf("%s: %q, want %q", when, got, want)
	}
}

// TestSilence: a server that fails or hangs for three seconds is silent, which is logged once, as is the end.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPanel(t, 1300*time.Millisecond, "a", "b", "c") // so that nothing coincides with the end of an answer
		p.will("b", broken)
		p.will("c", hung)
		time.Sleep(3 * time.Second)
		p.expect(t, "before three seconds", "")
		time.Sleep(3 * time.Second)
		p.expect(t, "after them", "b silent, c silent, b: broken for 6s, c: context deadline exceeded for 5s")
		p.will("b", well)
		time.Sleep(time.Minute)
		p.expect(t, "after a minute", "b silent, c silent, b answers, c: context deadline exceeded for 1m5s")
		p.will("c", nil)
		time.Sleep(2 * time.Second)
		p.expect(t, "without c", "b silent, c silent, b answers")
	})
}

// TestSlowIsNotSilent: a server whose answers come after those of the others is not silent.
func TestSlowIsNotSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPanel(t, time.Second, "a", "far")
		p.will("far", slow)
		time.Sleep(time.Minute)
		p.expect(t, "in a minute", "")
	})
}

// TestSilenceBetweenRefreshes: a server that has failed or hangs is asked again after three seconds, however
// rarely all are asked.
func TestSilenceBetweenRefreshes(t *testing.T) {
	for name, answer := range map[string]func(context.Context) error{"broken": broken, "context deadline exceeded": hung} {
		synctest.Test(t, func(t *testing.T) {
			p := newPanel(t, time.Hour, "a", "b")
			p.will("b", answer)
			p.ReportFailure()
			time.Sleep(8 * time.Second)
			p.expect(t, "after eight seconds", fmt.Sprintf("b silent, b: %s for %s", name, map[string]string{"broken": "8s", "context deadline exceeded": "7s"}[name]))
			p.will("b", well)
			time.Sleep(4 * time.Second)
			p.expect(t, "when it answers", "b silent, b answers")
		})
	}
}

// TestLatestEpochWins: the slots are where the server says that knows of the latest failover. A minority that knows less than
// was known before is behind, and a majority was set up again. What nobody names stays where it is.
func TestLatestEpochWins(t *testing.T) {
	all := func(epoch int64, address string) report {
		return report{epoch, []slotRange{{0, Slots - 1, address, ""}}}
	}
	var script atomic.Pointer[protocol.Script]
	script.Store(protocol.NewScript(nil))
	done := make(chan struct{})
	close(done) // so nodes connect only once
	topology := NewCluster(nil, &node.Config{Timeout: time.Second, Script: &script, Done: done}, zap.NewNop)
	defer func() { _ = topology.Close() }()
	for i, c := range []struct {
		says map[string]report // nothing: it does not answer
		want string            // of the first slot, and of the last one
	}{
		{map[string]report{"1:1": all(3, "1:1"), "2:2": all(4, "2:2"), "3:3": all(3, "1:1")}, "2:2 2:2"},
		{map[string]report{"1:1": all(3, "1:1"), "2:2": {}, "3:3": {}}, "2:2 2:2"},
		{map[string]report{"1:1": {4, []slotRange{{5, Slots - 1, "3:3", ""}}}, "2:2": {}, "3:3": {}}, "2:2 3:3"},
		{map[string]report{"1:1": all(2, "1:1"), "2:2": {}, "3:3": all(1, "3:3")}, "1:1 1:1"},
	} {
		topology.questions = func() (questions []question, _ error) {
			for address, says := range c.says {
				questions = append(questions, question{address, func(context.Context) (report, error) {
					if says.epoch == 0 {
						return says, errors.New("no answer")
					}
					return says, nil
				}})
			}
			return questions, nil
		}
		if err := topology.survey(true); err != nil {
			t.Fatal(err)
		}
		if got := topology.owner(0).Address + " " + topology.owner(Slots-1).Address; got != c.want {
			t.Errorf("%d: %s, want %s", i+1, got, c.want)
		}
	}
}
