package redisstore

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/lua"
	"github.com/seed-161337e5/caddyratelimit/store"
)

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
