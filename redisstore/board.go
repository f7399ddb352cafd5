package redisstore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/lua"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/keys"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// toldWishes is how many wishes of this process a board knows again.
	toldWishes = 16

	// soon is the time to the next turn while a report that was just asked for may come, and answering how long it may
	// take to answer a wish.
	soon      = store.ReportInterval / 4
	answering = 2 * store.ReportInterval
)

// board writes the reports of this process while somebody looks, and reads those of all while somebody looks here: both in
// one call in an interval. It runs only then; heartbeats tell when it has to.
type board struct {
	eval evaluate
	keys keys.Prefix
	name string

	mu      sync.Mutex
	write   func(wish string) string // nil: nothing is reported
	wish    string                   // the last one that was read
	mine    string                   // one to tell the others; empty: none
	told    []string                 // the last ones of this process
	since   time.Time                // somebody looks here since then
	until   time.Time                // and until then
	asked   time.Time                // when the last wish was told
	heard   int                      // turns that follow soon, to answer a wish of others
	runs    bool
	closed  bool
	wrote   bool          // in the last turn
	turned  chan struct{} // closed with the next turn
	read    time.Time     // when reports were last read, or could not be; zero: not since somebody looks here
	had     time.Time     // when they were last read
	pause   time.Duration // to the next turn
	reports []store.Report
	err     error

	hurry chan struct{} // has an element if a turn is to be taken soon
	quit  chan struct{}
	done  sync.WaitGroup
}

func newBoard(eval evaluate, keys keys.Prefix, name string) *board {
	return &board{eval: eval, keys: keys, name: name, turned: make(chan struct{}), hurry: make(chan struct{}, 1), quit: make(chan struct{})}
}

// Report implements [store.Shared].
func (s *operators) Report(write func(wish string) string) {
	s.board.mu.Lock()
	defer s.board.mu.Unlock()
	s.board.write = write
}

// Look implements [store.Shared].
func (s *operators) Look(ctx context.Context, wish string) ([]store.Report, error) {
	return s.board.look(ctx, wish)
}

// noticed learns that somebody looks.
func (b *board) noticed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.write != nil {
		b.start()
	}
}

// start has the board run. The lock is held.
func (b *board) start() {
	if !b.runs && !b.closed {
		b.runs = true
		b.done.Go(b.run)
	}
}

func (b *board) look(ctx context.Context, wish string) ([]store.Report, error) {
	b.mu.Lock()
	now := time.Now()
	if now.After(b.until) {
		b.since = now
	}
	b.until = now.Add(store.LookLife)
	// A caller that waits repeats its wish. Meanwhile others may have another one, which must not be lost.
	isNew := wish != "" && !slices.Contains(b.told, wish)
	if isNew {
		b.mine, b.told = wish, append(b.told[max(0, len(b.told)-toldWishes+1):], wish)
		b.asked = now
		select {
		case b.hurry <- struct{}{}:
		default:
		}
	}
	if now.Sub(b.read) < b.pause && !isNew || b.closed {
		defer b.mu.Unlock()
		if b.closed {
			return nil, store.ErrClosed
		}
		return b.known(), b.err
	}
	b.start()
	turned := b.turned
	b.mu.Unlock()
	select {
	case <-turned:
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.known(), b.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-b.quit:
		return nil, store.ErrClosed
	}
}

// run takes turns until nobody looks.
func (b *board) run() {
	more := b.turn(false)
	last := time.Now()
	timer := time.NewTimer(b.next())
	defer timer.Stop()
	for more {
		select {
		case <-timer.C:
			more = b.turn(false)
			last = time.Now()
			timer.Reset(b.next())
		case <-b.hurry:
			timer.Reset(max(0, soon-time.Since(last)))
		case <-b.quit:
			return
		}
	}
}

// next returns the time to the next turn.
func (b *board) next() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pause = store.ReportInterval
	switch {
	case b.heard == 2: // what it takes no time to say
		b.heard, b.pause = 1, 0
	case b.heard == 1: // what had to be found out
		b.heard, b.pause = 0, soon
	case b.expects(time.Now()):
		b.pause = soon
	}
	return b.pause
}

// expects reports whether another process may report any moment: it has just been asked to answer a wish, or is
// soon counted, and learns then that somebody looks. The lock is held.
func (b *board) expects(now time.Time) bool {
	if b.err != nil || !now.Before(b.until) {
		return false
	}
	asked, begun := now.Sub(b.asked) < answering, now.Sub(b.since) < store.CountInterval+store.ReportInterval
	return slices.ContainsFunc(b.reports, func(r store.Report) bool {
		reports := r.Text != "" && r.Age < answering
		return r.Process != b.name && r.Lives && (asked && reports || begun && !reports && r.Counted < store.CountInterval+store.ReportInterval)
	})
}

// known returns the last reports. If they could not be read since, they have grown older. The lock is held.
func (b *board) known() []store.Report {
	if b.err == nil {
		return b.reports
	}
	all, older := slices.Clone(b.reports), time.Since(b.had)
	for i := range all {
		all[i].Age, all[i].Counted = all[i].Age+older, all[i].Counted+older
	}
	return all
}

// turn writes a report, and reads those of others if somebody looks here. It reports whether there is to be another one.
func (b *board) turn(leaves bool) (more bool) {
	b.mu.Lock()
	write, wish, mine, reads, left := b.write, b.wish, b.mine, time.Now().Before(b.until), "0"
	b.mu.Unlock()
	timeout, look := beatTimeout, int64(0)
	if leaves {
		timeout, reads, left = leaveTimeout, false, "1"
	}
	text := ""
	if write != nil {
		if text = write(cmp.Or(mine, wish)); len(text) > store.MaxReport {
			text = ""
		}
	}
	all := []string{b.keys.Looked(), b.keys.Wished(), b.keys.Reporters(), b.keys.Instances(), b.keys.Report(b.name)}
	if reads {
		look = store.LookLife.Milliseconds()
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	answer, err := b.eval(ctx, lua.Board.Text(), all, b.name, text, left, store.ReportLife.Milliseconds(), look, mine, store.MaxReport, store.MaxReports,
		b.keys.Report(""))
	var r reply
	if err == nil {
		r, err = readReply(answer)
	}
	return b.note(&r, err, reads, mine, text != "")
}

// note keeps what a turn has brought, and ends the run if nobody looks.
func (b *board) note(r *reply, err error, reads bool, mine string, wrote bool) (more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err, b.wrote = err, wrote && err == nil && r.looked
	if err == nil {
		if r.wish != b.wish && r.wish != mine && r.wish != "" {
			b.heard = 2
		}
		b.wish = r.wish
		if b.mine == mine {
			b.mine = ""
		}
	}
	if reads {
		b.read = time.Now()
		if err == nil {
			b.reports, b.had = r.reports, b.read
		}
		close(b.turned)
		b.turned = make(chan struct{})
	}
	looks := time.Now().Before(b.until)
	if more = looks || err == nil && r.looked && b.write != nil; !more {
		b.runs = false
	}
	if !looks {
		b.reports, b.read = nil, time.Time{}
	}
	return more
}

// leave ends the reports. The last one says that this process leaves. A second call does nothing.
func (b *board) leave() {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return
	}
	b.closed = true
	b.mu.Unlock()
	close(b.quit)
	b.done.Wait()
	if b.wrote {
		b.turn(true)
	}
}

// reply is what the script has answered.
type reply struct {
	looked  bool
	wish    string
	reports []store.Report
}

var errReply = errors.New("redis answered something else than reports")

// readReply reads an answer.
func readReply(answer []any) (r reply, err error) {
	if len(answer) < 3 {
		return r, errReply
	}
	now, ok := answer[0].(int64)
	looked, _ := answer[1].(int64)
	if r.looked = looked == 1; !ok {
		return r, errReply
	}
	r.wish, _ = answer[2].(string)
	for rest := answer[3:]; len(rest) >= 4; rest = rest[4:] {
		name, _ := rest[0].(string)
		lives, _ := rest[1].(int64)
		text, _ := rest[3].(string)
		report := store.Report{Process: name, Lives: lives == 1, Counted: countedAgo(rest[2], now)}
		readReport(&report, text, now)
		r.reports = append(r.reports, report)
	}
	return r, nil
}

// countedAgo returns how long ago a process was counted, by its time in the set. One that leaves counts for a shorter time, and
// seems to have been counted before.
func countedAgo(at any, now int64) time.Duration {
	text, _ := at.(string)
	until, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	ago := float64(now) - (until - float64(beatTTL.Milliseconds()))
	return time.Duration(min(max(ago, 0), float64(beatTTL.Milliseconds()))) * time.Millisecond
}

// readReport reads what is kept of a report. One that is damaged, or of the future, counts as none.
func readReport(r *store.Report, kept string, now int64) {
	at, rest, _ := strings.Cut(kept, " ")
	left, text, ok := strings.Cut(rest, " ")
	written, err := strconv.ParseInt(at, 10, 64)
	if !ok || err != nil || written > now || now-written > store.ReportLife.Milliseconds() {
		return
	}
	r.Left, r.Text = left == "1", text
	r.Written, r.Age = time.UnixMilli(written), time.Duration(now-written)*time.Millisecond
}
