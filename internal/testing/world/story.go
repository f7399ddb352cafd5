package world

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

// Story tells in English what happened in a world, in the order of time, and what was wrong with it. Times begin when
// all instances are there. Client 3 is that of the event with index 3.
func (h *History) Story(violations []string) string {
	var b strings.Builder
	if h.Plan.Instances == 1 {
		b.WriteString("There is one instance, 0, and Redis.\n")
	} else {
		fmt.Fprintf(&b, "There are %d instances, from 0, and Redis.\n", h.Plan.Instances)
	}
	if l := h.Plan.Layout; l != Single {
		fmt.Fprintf(&b, "Redis has the layout %s.\n", l)
	}
	for number := range addresses[h.Plan.Addresses] {
		fmt.Fprintf(&b, "Key %d is the address %s.\n", number, h.Plan.keyName(number))
	}
	for i, z := range h.Plan.Zones {
		fmt.Fprintf(&b, "Zone %d %s.\n", i, z.told())
	}
	var lines []line
	for i := range h.Plan.Events {
		lines = append(lines, line{h.began + h.Plan.Events[i].At, h.Plan.Events[i].told(i)})
	}
	for i := range h.Answers {
		lines = append(lines, h.told(&h.Answers[i])...)
	}
	for i := range h.Verdicts {
		v, what := &h.Verdicts[i], "does not pass"
		if v.Passes {
			what = "passes"
		}
		lines = append(lines, line{v.Ended, fmt.Sprintf("the request of client %d %s (%s)", v.Event, what, outcome.Names[v.Outcome])})
	}
	for _, m := range h.Missed {
		what := "what instance %d sends to Redis is lost"
		if m.Reply {
			what = "the reply of Redis to instance %d is lost"
		}
		lines = append(lines, line{m.At, fmt.Sprintf(what, m.Instance)})
	}
	for _, c := range h.Commands {
		if len(c.Reply) > 0 && c.Reply[0] == '-' {
			text, _, _ := strings.Cut(string(c.Reply[1:]), " script: ")
			lines = append(lines, line{c.At, fmt.Sprintf("Redis answers instance %d: %s", c.Instance, strings.TrimSpace(text))})
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	for _, l := range lines {
		fmt.Fprintf(&b, "At %s %s.\n", told(l.at-h.began), strings.TrimSuffix(l.text, "."))
	}
	for _, v := range violations {
		fmt.Fprintf(&b, "This is wrong: %s.\n", strings.TrimSuffix(v, "."))
	}
	return b.String()
}

// told is a time in seconds.
func told(d time.Duration) string {
	text := strings.TrimRight(fmt.Sprintf("%.6f", d.Seconds()), "0")
	if whole, parts, _ := strings.Cut(text, "."); len(parts) < 3 {
		text = whole + "." + (parts + "000")[:3]
	}
	return text + " s"
}

// told is what a zone is, behind its name.
func (z *Zone) told() string {
	l := z.Limit
	text := fmt.Sprintf("allows %d in %v by %s", l.Events, l.Window, z.Algorithm)
	if z.slots() {
		text = fmt.Sprintf("allows %d at a time", l.Events)
	}
	for _, option := range []string{l.Refill, l.Mode, l.Align} {
		if option != "" {
			text += ", " + option
		}
	}
	if z.Lend > 0 {
		text += fmt.Sprintf(", and holds units for %v", z.Lend)
	}
	if z.Paying > 0 {
		text += fmt.Sprintf(", and allows %d if a plan is paid", z.Paying)
	}
	return text
}

// told is what an event is. A kind that it does not know has its name.
func (e *Event) told(i int) string {
	if tell, known := tales[e.Kind]; known {
		return tell(e, i)
	}
	return fmt.Sprintf("event %d is %s: %+v", i, e.Kind, *e)
}

// tales are what events of a kind are.
var tales = map[Kind]func(e *Event, i int) string{
	Take: func(e *Event, i int) string {
		return fmt.Sprintf("client %d asks instance %d for key %d of zone %d, cost %d", i, e.Instance, e.Key, e.Zone, e.Cost)
	},
	Request: func(e *Event, i int) string {
		zones := fmt.Sprintf("zone %d", e.Zone)
		if e.Zone < 0 {
			zones = "all zones"
		}
		text := fmt.Sprintf("client %d sends a request to instance %d, for key %d of %s, cost %d", i, e.Instance, e.Key, zones, e.Cost)
		if e.Sort != "" {
			text += " (" + e.Sort + ")"
		}
		return text
	},
	LoseRequests: func(e *Event, _ int) string { return e.lasting("requests of %s get lost") },
	LoseReplies:  func(e *Event, _ int) string { return e.lasting("replies to %s get lost") },
	Delay:        func(e *Event, _ int) string { return e.lasting("messages of %s are late") },
	Freeze:       func(e *Event, _ int) string { return e.lasting("Redis stands still") },
	Restart:      func(e *Event, _ int) string { return e.lasting("Redis loses all, and is away") },
	Failover: func(e *Event, _ int) string {
		return e.lasting(fmt.Sprintf("Redis loses the last %s, and is away", told(e.After)))
	},
	Demote: func(*Event, int) string {
		return "another server becomes the master, and the address leads to it"
	},
	Promote: func(e *Event, _ int) string {
		old := "which goes on"
		if e.Surely {
			old = "which is away"
		}
		return fmt.Sprintf("another server takes the place of the master, %s for %s, without what was written in the last %s", old, told(e.For), told(e.After))
	},
	Move: func(e *Event, _ int) string {
		return e.lasting(fmt.Sprintf("the slot of key %d moves to another node", e.Key))
	},
	SentinelsGone: func(e *Event, _ int) string { return e.lasting("Sentinels are away: " + one(e.Key)) },
	Lie:           func(e *Event, _ int) string { return e.lasting("a Sentinel names the wrong master: " + one(e.Key)) },
	Loading:       func(e *Event, _ int) string { return e.lasting("Redis loads what it has") },
	MasterDown:    func(e *Event, _ int) string { return e.lasting("Redis is a replica without its master") },
	Step:          func(e *Event, _ int) string { return fmt.Sprintf("the clock of Redis steps by %v", e.After) },
	Full:          func(e *Event, _ int) string { return e.lasting("Redis has no memory") },
	Readonly:      func(e *Event, _ int) string { return e.lasting("Redis is a replica") },
	NoReplicas:    func(e *Event, _ int) string { return e.lasting("Redis has too few replicas to write") },
	Unsaved:       func(e *Event, _ int) string { return e.lasting("Redis cannot write to its disk, and writes nothing") },
	Forbid:        func(e *Event, _ int) string { return e.lasting("the user of Redis may not write") },
	Override: func(e *Event, _ int) string {
		return e.byOperator("key", "sets an override: %s is "+e.overridden())
	},
	Network: func(e *Event, _ int) string {
		return e.byOperator("network", "sets an override: %s is "+e.overridden())
	},
	ClearNetwork: func(e *Event, _ int) string { return e.byOperator("network", "clears the override of %s") },
	Clear:        func(e *Event, _ int) string { return e.byOperator("key", "clears the override of %s") },
	Unban:        func(e *Event, _ int) string { return e.byOperator("key", "unbans %s") },
	Reset:        func(e *Event, _ int) string { return e.byOperator("key", "resets %s") },
	Reload: func(e *Event, _ int) string {
		text := fmt.Sprintf("instance %d loads its config again", e.Instance)
		if e.Cost > 0 {
			text += fmt.Sprintf(", in which zone %d allows %d", e.Zone, e.Cost)
		}
		return text
	},
	Flood: func(e *Event, i int) string {
		return fmt.Sprintf("client %d asks instance %d for key %d of zone %d, %d times at once", i, e.Instance, e.Key, e.Zone, e.Cost)
	},
	Busy: func(e *Event, _ int) string {
		return e.lasting("the machine of %s is busy, so that each message takes " + told(e.After))
	},
	Suspend: func(e *Event, _ int) string { return e.lasting("the machine of %s stands still") },
	Kill: func(e *Event, _ int) string {
		return fmt.Sprintf("instance %d is killed, and another one takes its place after %s", e.Instance, told(e.For))
	},
}

// overridden is what an override sets.
func (e *Event) overridden() string {
	what := e.Sort
	if what == limited {
		what = fmt.Sprintf("limited to %d", e.Cost)
	}
	if e.For > 0 {
		what += " for " + told(e.For)
	}
	if e.Delta > 0 {
		what += fmt.Sprintf(", with %d other keys", e.Delta)
	}
	return what
}

// byOperator says what an operator does to a key or a network.
func (e *Event) byOperator(to, text string) string {
	return fmt.Sprintf("an operator at instance %d ", e.Instance) + fmt.Sprintf(text, fmt.Sprintf("%s %d of zone %d", to, e.Key, e.Zone))
}

// one is a number, or all.
func one(number int) string {
	if number < 0 {
		return "all"
	}
	return fmt.Sprint("number ", number)
}

// lasting is a text about an instance or all of them, with a length.
func (e *Event) lasting(text string) string {
	who := fmt.Sprintf("instance %d", e.Instance)
	if e.Instance < 0 {
		who = "all instances"
	}
	if strings.Contains(text, "%s") {
		text = fmt.Sprintf(text, who)
	}
	return fmt.Sprintf("%s, for %s", text, told(e.For))
}

// told is what a client is answered, and what it adjusts later.
func (h *History) told(a *Answer) []line {
	text := ""
	switch d := a.Decision; {
	case a.Failure != "":
		text = fmt.Sprintf("gets no decision (%s)", a.Failure)
	case d.Allowed:
		text = fmt.Sprintf("is admitted, %d of %d are left", d.Remaining, d.Quota)
	case d.RetryAfter == algorithms.Never:
		text = fmt.Sprintf("is refused, whatever comes, %d of %d are left", d.Remaining, d.Quota)
	default:
		text = fmt.Sprintf("is refused, for %s, %d of %d are left", told(d.RetryAfter), d.Remaining, d.Quota)
	}
	lines := []line{{a.Ended, fmt.Sprintf("client %d %s", a.Event, text)}}
	switch {
	case a.Adjusted != 0 && a.Delta < 0:
		lines = append(lines, line{a.Adjusted, fmt.Sprintf("client %d gives %d back", a.Event, -a.Delta)})
	case a.Adjusted != 0:
		lines = append(lines, line{a.Adjusted, fmt.Sprintf("client %d costs %d more", a.Event, a.Delta)})
	}
	return lines
}
