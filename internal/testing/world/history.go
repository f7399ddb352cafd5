package world

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// History is what happened in a world.
type History struct {
	Plan    *Plan
	Answers []Answer // in the order of their events, when the world is over

	mu    sync.Mutex
	lines []line
}

type line struct {
	at   time.Duration
	text string
}

// Answer is what a client was answered.
type Answer struct {
	Event        int
	Began, Ended time.Duration
	Failure      string // its kind; empty: there is a decision
	Decision     algorithms.Decision
}

func (h *History) note(at time.Duration, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, line{at, text})
}

func (h *History) answer(a Answer) {
	text := fmt.Sprintf("client %d: came at %v, %s", a.Event, a.Began, a.Failure)
	if a.Failure == "" {
		text += fmt.Sprintf("%+v", a.Decision)
	}
	h.note(a.Ended, text)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Answers = append(h.Answers, a)
	slices.SortFunc(h.Answers, func(a, b Answer) int { return cmp.Compare(a.Event, b.Event) })
}

// String returns all of it, in the order of time. What happened at the same instant is in the order of its text.
func (h *History) String() string {
	slices.SortFunc(h.lines, func(a, b line) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.text, b.text)) })
	var b strings.Builder
	for _, l := range h.lines {
		fmt.Fprintf(&b, "%12v %s\n", l.at, l.text)
	}
	return b.String()
}
