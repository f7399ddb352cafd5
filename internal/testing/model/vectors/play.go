package vectors

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// player plays a scenario.
type player struct {
	key   Key
	from  time.Time
	limit algorithms.Limit
	taken map[string]int64 // the times of the charges by name
}

// start is the time from which others count unless a scenario has another one: 250 ms after a
// full second, minute and hour.
var start = time.Date(2026, 11, 18, 15, 0, 0, 250e6, time.UTC)

// Play plays a scenario, and reports each answer that is not the expected one. A line that is unknown ends the test.
func (s *Scenario) Play(t testing.TB, key Key) {
	t.Helper()
	p := &player{key: key, from: start, taken: make(map[string]int64)}
	for _, line := range s.lines {
		request, want, _ := strings.Cut(line.text, " -> ")
		switch got, err := p.play(strings.Fields(request)); {
		case err != nil:
			t.Fatalf("line %d: %v: %q", line.number, err, line.text)
		case got != want:
			t.Errorf("line %d:\ngot  %s\nwant %s", line.number, got, want)
		}
	}
}

// play plays a line, and returns the answer in the words of the file.
func (p *player) play(words []string) (answer string, err error) {
	switch words[0] {
	case "from":
		p.from, err = time.Parse(time.RFC3339Nano, strings.Join(words[1:], " "))
		return "", err
	case "limit":
		p.limit = algorithms.Limit{}
		for _, word := range words[1:] {
			if option, value, _ := strings.Cut(word, "="); err == nil {
				err = p.setOption(option, value)
			}
		}
		return "", err
	}
	after, err := time.ParseDuration(words[0])
	do := "take"
	if len(words) > 2 && slices.Contains([]string{"renew", "adjust", "ahead"}, words[1]) {
		do, words = words[1], words[1:]
	}
	if err != nil || len(words) < 2 {
		return "", fmt.Errorf("no time and cost: %w", err)
	}
	n, err := strconv.ParseInt(words[1], 10, 64)
	if err != nil {
		return "", err
	}
	return p.ask(do, p.from.Add(after).UnixMicro(), n, strings.Join(words[2:], " "))
}

// ask asks the key.
func (p *player) ask(do string, now, n int64, name string) (answer string, err error) {
	at, known := p.taken[name]
	p.taken[name] = now
	switch do {
	case "renew":
		p.key.Renew(p.limit, now, n, name)
	case "adjust":
		if p.taken[name] = at; !known {
			return "", errors.New("there was no charge under that name")
		}
		p.key.Adjust(p.limit, now, at, n, name)
	case "ahead":
		units, lasts := p.key.Ahead(p.limit, now, n, name)
		// An adjustment of what was charged ahead is of a charge that was made when the units last no more.
		p.taken[name] += lasts.Microseconds()
		answer = fmt.Sprint(units, short(lasts))
	default:
		if known && name != "" {
			return "", errors.New("the name is taken")
		}
		answer = words(p.key.Take(p.limit, now, n, name), p.limit)
	}
	return answer, nil
}

// setOption sets an option of the limit.
func (p *player) setOption(option, value string) (err error) {
	l := &p.limit
	switch option {
	case "events":
		l.Events, err = strconv.ParseInt(value, 10, 64)
	case "burst":
		l.Burst, err = strconv.ParseInt(value, 10, 64)
	case "window":
		for _, c := range []algorithms.Calendar{algorithms.Day, algorithms.Week, algorithms.Month, algorithms.Year} {
			if value == c.String() {
				l.Calendar = c
				return nil
			}
		}
		l.Window, err = time.ParseDuration(value)
	case "timezone":
		l.Location, err = time.LoadLocation(value)
	case "max_wait":
		l.MaxWait, err = time.ParseDuration(value)
	case "lease":
		l.Lease, err = time.ParseDuration(value)
	case "lend":
		l.Hold, err = time.ParseDuration(value)
	case "refill":
		l.Refill = value
	case "mode":
		l.Mode = value
	case "align":
		l.Align = value
	default:
		err = fmt.Errorf("no option %q", option)
	}
	return err
}
