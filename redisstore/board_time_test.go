package redisstore

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/simredis"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/keys"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// lookers are processes that share a simulated Redis, in simulated time.
type lookers struct {
	mu    sync.Mutex
	redis *simredis.Server
	calls map[string]int // of each
	hangs string         // one that does nothing any more
}

var errHangs = errors.New("it hangs")

// join adds a process. What it reports is the last wish, and after a moment what was found out for it.
func (l *lookers) join(t *testing.T, name string) *board {
	eval := func(_ context.Context, script string, keys []string, args ...any) ([]any, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.hangs == name {
			return nil, errHangs
		}
		l.calls[name]++
		command := append([]string{"EVAL", script, strconv.Itoa(len(keys))}, keys...)
		for _, a := range args {
			command = append(command, fmt.Sprint(a))
		}
		value, err := readValue(bufio.NewReader(bytes.NewReader(l.redis.Do(command...))))
		all, _ := value.([]any)
		return all, err
	}
	prefix := keys.Prefix("rl")
	b := newBoard(eval, prefix, name)
	var began time.Time
	b.write = func(wish string) string {
		if wish == "" {
			return "well"
		}
		if began.IsZero() {
			began = time.Now()
		}
		if time.Since(began) < soon/2 {
			return "looks"
		}
		return "found " + wish
	}
	h := startHeartbeat(eval, func(err error) { t.Error(err) }, b.noticed, func(int64) {}, prefix, name)
	text := "I am " + name
	h.text.Store(&text)
	t.Cleanup(func() {
		b.leave()
		h.leave()
	})
	return b
}

// readValue reads an answer of Redis.
func readValue(in *bufio.Reader) (any, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	text := strings.TrimSpace(line[1:])
	n, _ := strconv.Atoi(text)
	switch line[0] {
	case ':':
		return int64(n), nil
	case '$':
		if n < 0 {
			return nil, nil
		}
		of := make([]byte, n+2)
		_, err = io.ReadFull(in, of)
		return string(of[:n]), err
	case '*':
		all := make([]any, n)
		for i := range all {
			if all[i], err = readValue(in); err != nil {
				return nil, err
			}
		}
		return all, nil
	}
	return nil, errors.New(line)
}

// await looks until a process has reported a text, and returns how long that took.
func (l *lookers) await(t *testing.T, b *board, wish, name, text string) time.Duration {
	t.Helper()
	began := time.Now()
	for time.Since(began) < time.Minute {
		reports, err := b.look(t.Context(), wish)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(reports, func(r store.Report) bool { return r.Process == name && r.Text == text }) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(began)
}

// counted returns how many calls each instance has made.
func (l *lookers) counted() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.calls)
}

// TestReportsComeSoon: the first report of an instance comes when it is counted the next time, and what somebody wishes comes soon
// after its next report. While nobody waits, each makes one call in an interval. One that hangs is not counted any more.
func TestReportsComeSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lookers{redis: simredis.New(func() int64 { return time.Now().UnixMicro() }), calls: make(map[string]int)}
		one := l.join(t, "one")
		time.Sleep(2 * time.Second)
		l.join(t, "two")
		l.join(t, "three")
		time.Sleep(20 * time.Second)
		l.mu.Lock()
		l.hangs = "three"
		clear(l.calls)
		l.mu.Unlock()
		time.Sleep(10 * time.Second)
		if calls := l.counted(); calls["one"] != 2 || calls["two"] != 2 {
			t.Errorf("while nobody looks, the calls are %v, want 2 of each", calls)
		}
		if took := l.await(t, one, "", "two", "well"); took > store.CountInterval+soon {
			t.Errorf("the first report has taken %v", took)
		}
		reports, _ := one.look(t.Context(), "")
		for _, r := range reports {
			if late := r.Counted > store.CountInterval; late != (r.Process == "three") {
				t.Errorf("%s was counted %v ago", r.Process, r.Counted)
			}
		}
		time.Sleep(store.ReportInterval)
		l.mu.Lock()
		clear(l.calls)
		l.mu.Unlock()
		time.Sleep(10 * time.Second)
		if calls := l.counted(); calls["two"] > 5+2+1 || calls["one"] > 5+2+1 {
			t.Errorf("in 10s, the calls are %v, want one in an interval and heartbeats", calls)
		}
		if took := l.await(t, one, "wish", "two", "found wish"); took > store.ReportInterval+3*soon {
			t.Errorf("what is wished has taken %v", took)
		}
	})
}
