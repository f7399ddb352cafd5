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

// toldWishes is how many wishes of this process a board knows again.
const toldWishes = 16

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
	until   time.Time                // somebody looks here until then
	runs    bool
	closed  bool
	wrote   bool          // in the last turn
	turned  chan struct{} // closed with the next turn
	read    time.Time     // when reports were last read; zero: not since somebody looks here
	reports []store.Report
	err     error
	names   []string // whose reports are read

	quit chan struct{}
	done sync.WaitGroup
}

func newBoard(eval evaluate, keys keys.Prefix, name string) *board {
	return &board{eval: eval, keys: keys, name: name, turned: make(chan struct{}), quit: make(chan struct{})}
}

// Report implements [store.Board].
func (s *operators) Report(write func(wish string) string) {
	s.board.mu.Lock()
	defer s.board.mu.Unlock()
	s.board.write = write
}

// Look implements [store.Board].
func (s *operators) Look(ctx context.Context, wish string) ([]store.Report, error) {
	return s.board.look(ctx, wish)
}

// noticed is told that somebody looks.
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
	b.until = time.Now().Add(store.LookLife)
	// A caller that waits repeats its wish. Meanwhile others may have another one, which must not be lost.
	isNew := wish != "" && !slices.Contains(b.told, wish)
	if isNew {
		b.mine, b.told = wish, append(b.told[max(0, len(b.told)-toldWishes+1):], wish)
	}
	if time.Since(b.read) < store.ReportInterval && !isNew || b.closed {
		defer b.mu.Unlock()
		if b.closed {
			return nil, store.ErrClosed
		}
		return b.reports, b.err
	}
	b.start()
	turned := b.turned
	b.mu.Unlock()
	select {
	case <-turned:
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.reports, b.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-b.quit:
		return nil, store.ErrClosed
	}
}

// run takes turns until nobody looks.
func (b *board) run() {
	more := b.turn(false)
	if more && b.isNew() { // the first turn has only learned the names
		more = b.turn(false)
	}
	timer := time.NewTimer(store.ReportInterval)
	defer timer.Stop()
	for ; more; timer.Reset(store.ReportInterval) {
		select {
		case <-timer.C:
			more = b.turn(false)
		case <-b.quit:
			return
		}
	}
}

// isNew reports whether there are names whose reports were not asked for.
func (b *board) isNew() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err == nil && slices.ContainsFunc(b.reports, func(r store.Report) bool { return !slices.Contains(b.names, r.Process) })
}

// turn writes a report, and reads those of others if somebody looks here. It reports whether there is to be another one.
func (b *board) turn(leaves bool) (more bool) {
	b.mu.Lock()
	write, wish, mine, reads, left := b.write, b.wish, b.mine, time.Now().Before(b.until), "0"
	var names []string
	for _, r := range b.reports {
		names = append(names, r.Process)
	}
	if b.names = names; !reads {
		b.names = nil
	}
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
		for _, name := range names {
			all = append(all, b.keys.Report(name))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	answer, err := b.eval(ctx, lua.Board, all, b.name, text, left, store.ReportLife.Milliseconds(), look, mine, store.MaxReport, store.MaxReports)
	var r reply
	if err == nil {
		r, err = readReply(answer, names)
	}
	return b.note(&r, err, reads, mine, text != "")
}

// note keeps what a turn has brought, and ends the run if nobody looks.
func (b *board) note(r *reply, err error, reads bool, mine string, wrote bool) (more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err, b.wrote = err, wrote && err == nil && r.looked
	if err == nil {
		b.wish = r.wish
		if b.mine == mine {
			b.mine = ""
		}
	}
	if reads {
		b.read = time.Now()
		if err == nil {
			b.reports = r.reports
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

// readReply reads an answer, with the reports of processes of these names.
func readReply(answer []any, names []string) (r reply, err error) {
	if len(answer) < 5 {
		return r, errReply
	}
	now, ok := answer[0].(int64)
	looked, _ := answer[1].(int64)
	lives, _ := answer[3].([]any)
	reporting, _ := answer[4].([]any)
	if r.looked = looked == 1; !ok {
		return r, errReply
	}
	r.wish, _ = answer[2].(string)
	for i, all := range [][]any{lives, reporting} {
		for _, name := range all {
			name, ok := name.(string)
			if ok && len(r.reports) < store.MaxReports && !slices.ContainsFunc(r.reports, func(known store.Report) bool { return known.Process == name }) {
				r.reports = append(r.reports, store.Report{Process: name, Lives: i == 0})
			}
		}
	}
	for i, text := range answer[5:] {
		text, _ := text.(string)
		at := slices.IndexFunc(r.reports, func(known store.Report) bool { return i < len(names) && known.Process == names[i] })
		if at >= 0 {
			readReport(&r.reports[at], text, now)
		}
	}
	return r, nil
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

var _ store.Board = (*Store)(nil)
