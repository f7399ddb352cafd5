package redisstore

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/lua"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/keys"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// firstBeat is when a store that was opened is sure to be in use: a config that is only
	// validated is no instance. Leases are renewed and connections looked after at other moments: if two of
	// these fell together, chance would say which comes first, and no simulation could be repeated.
	firstBeat = 1050 * time.Millisecond

	// beatInterval is how often a process reports that it lives, and beatTTL how long it
	// counts after that.
	beatInterval = store.CountInterval
	beatTTL      = 3 * beatInterval

	// leaveTTL is how long a process counts after it has closed its store. It may have another
	// store, with other options, which reports within an interval.
	leaveTTL = beatInterval + time.Second

	// beatTimeout and leaveTimeout bound a beat, and how long the last one may hold up
	// the closing of the store.
	beatTimeout  = time.Second
	leaveTimeout = 100 * time.Millisecond
)

// heartbeat reports to the fleet that this process lives, and what it does, and learns how many processes there are. No
// request waits for it. While Redis is away the last number holds.
type heartbeat struct {
	eval   evaluate
	warn   func(error)
	marked func(mark int64) // gets the mark of the last change of a network
	keys   keys.Prefix
	name   string

	reports atomic.Pointer[reports]
	kept    atomic.Pointer[string] // the report that Redis has, as far as is known
	looked  atomic.Bool            // at the last beat, somebody looked

	seen atomic.Int64 // 0: the process has not been counted
	quit chan struct{}
	once sync.Once
	done chan struct{}
}

// reports is what a process reports: see [store.Shared].
type reports struct {
	brief string
	all   func() string
}

// evaluate runs a script whose keys have one slot.
type evaluate func(ctx context.Context, script string, keys []string, args ...any) ([]any, error)

// startHeartbeat starts to report, until leave. An error that Redis answers goes to warn.
func startHeartbeat(eval evaluate, warn func(error), marked func(int64), keys keys.Prefix, name string) *heartbeat {
	h := &heartbeat{
		eval:   eval,
		warn:   warn,
		marked: marked,
		keys:   keys,
		name:   name,
		quit:   make(chan struct{}),
		done:   make(chan struct{}),
	}
	go h.run()
	return h
}

// instances is how many processes were last seen, at least this one.
func (h *heartbeat) instances() int { return max(1, int(h.seen.Load())) }

func (h *heartbeat) run() {
	defer close(h.done)
	timer := time.NewTimer(firstBeat)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			h.beat(beatTimeout)
			timer.Reset(beatInterval)
		case <-h.quit:
			return
		}
	}
}

// beat sends a heartbeat. If it learns that somebody looks since the one before, all that is reported follows at once.
func (h *heartbeat) beat(timeout time.Duration) {
	brief := !h.looked.Load()
	h.send(beatTTL, timeout)
	if brief && h.looked.Load() {
		h.send(beatTTL, timeout)
	}
}

// leave ends the heartbeats. A second call does nothing.
func (h *heartbeat) leave() {
	h.once.Do(func() {
		close(h.quit)
		<-h.done
		if h.seen.Load() > 0 {
			h.send(leaveTTL, leaveTimeout)
		}
	})
}

// report returns what is to be reported, with a mark if the process leaves.
func (h *heartbeat) report(leaves bool) (text string) {
	r := h.reports.Load()
	if r == nil {
		return ""
	}
	if text = r.brief; h.looked.Load() {
		text = r.all()
	}
	if leaves {
		text = leftMark + text
	}
	return text
}

// send has this process counted for a while, and learns how many there are, and whether somebody looks. Its report is kept in
// the same call.
func (h *heartbeat) send(life, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	all, text, fresh := []string{h.keys.Instances()}, h.report(life == leaveTTL), ""
	if text != "" {
		all = append(all, h.keys.Report(h.name), h.keys.Looked())
		if known := h.kept.Load(); known == nil || *known != text {
			fresh = text
		}
	}
	answer, err := h.eval(ctx, lua.Beat.Text(), all, h.name, life.Milliseconds(), store.ReportLife.Milliseconds(), fresh)
	if len(all) > 1 && err != nil && (node.LacksRight(err) || redis.HasErrorPrefix(err, "TRYAGAIN")) { // it counts all the same
		answer, err = h.eval(ctx, lua.Beat.Text(), all[:1], h.name, life.Milliseconds(), store.ReportLife.Milliseconds(), "")
	}
	if err != nil {
		// That Redis is away shows when it is asked for decisions.
		if errors.As(err, new(redis.Error)) {
			h.warn(err)
		}
		return
	}
	var numbers [4]int64
	for i := range min(len(numbers), len(answer)) {
		numbers[i], _ = answer[i].(int64)
	}
	h.seen.Store(numbers[0])
	h.marked(numbers[3])
	if numbers[1] == 0 {
		text = "" // the next beat brings it
	}
	h.kept.Store(&text)
	h.looked.Store(numbers[2] == 1)
}

// leftMark begins the report of a process that has left.
const leftMark = "-"

// lastReports are those that were last read.
type lastReports struct {
	at      time.Time
	reports []store.Report
}

// Report implements [store.Shared].
func (s *operators) Report(brief string, all func() string) {
	s.heartbeat.reports.Store(&reports{brief, all})
}

// Look implements [store.Shared].
func (s *operators) Look(ctx context.Context, asks bool) ([]store.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, beatTimeout)
	defer cancel()
	life := time.Duration(0)
	if asks {
		life = store.LookLife
	}
	answer, err := s.eval(ctx, lua.Look.Text(), []string{s.keys.Instances(), s.keys.Looked()},
		life.Milliseconds(), store.MaxReport+len(leftMark), store.MaxReports, s.keys.Report(""))
	if err != nil {
		return s.older(), err
	}
	all, err := readReports(answer)
	if err != nil {
		return s.older(), err
	}
	s.last.Store(&lastReports{time.Now(), all})
	return all, nil
}

// older returns the reports that were last read, which are older now.
func (s *operators) older() []store.Report {
	last := s.last.Load()
	if last == nil || time.Since(last.at) > store.ReportLife {
		return nil
	}
	all := slices.Clone(last.reports)
	for i := range all {
		all[i].Age += time.Since(last.at)
	}
	return all
}

// readReports reads what lua/look.lua answers.
func readReports(answer []any) (all []store.Report, err error) {
	if len(answer) == 0 {
		return nil, errors.New("redis answered something else than reports")
	}
	now, _ := answer[0].(int64)
	for of := range slices.Chunk(answer[1:], 3) {
		if len(of) == 3 {
			name, _ := of[0].(string)
			till, _ := of[1].(string)
			text, _ := of[2].(string)
			all = append(all, readReport(now, name, till, text))
		}
	}
	return all, nil
}

// readReport reads a report of a process, by the time until which it counts. A text of another version counts as none.
func readReport(now int64, name, till, text string) store.Report {
	until, _ := strconv.ParseFloat(till, 64)
	r := store.Report{Process: name, Lives: until > float64(now)}
	life := beatTTL
	if r.Text, r.Left = strings.CutPrefix(text, leftMark); r.Left {
		life = leaveTTL
	}
	if !strings.HasPrefix(r.Text, "{") {
		r.Text = ""
	}
	age := float64(now) - until + float64(life.Milliseconds())
	r.Age = time.Duration(min(max(age, 0), float64((life+store.ReportLife).Milliseconds()))) * time.Millisecond
	r.At = time.UnixMilli(now).Add(-r.Age)
	return r
}
