package replay

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
)

// Client is what a suggestion is made of: the most that a key has used of any window, counted as if
// nothing had been refused.
type Client struct {
	Key    string
	Peak   int64
	Human  bool // it looks like people
	Shared bool // it looks like several people behind one address
}

// Sizes are what the peaks of all clients say.
type Sizes struct {
	Clients    int
	Median     int64 // half of the clients have a peak of at most this
	P99        int64 // 99 % of the clients have a peak of at most this
	People     int   // clients that look like people
	Shared     int   // those of them that look like several
	PeopleMost int64 // 99.9 % of people, and all that look like several, have a peak of at most this

	Limit     int64    // the smallest round number that is at least PeopleMost and twice P99
	Reference int64    // the smallest round number that is at least P99
	Above     int      // clients whose peak is above Limit
	Highest   []string // the first few of them
}

const maxHighest = 5

// SizesOf measures the peaks of clients. It sorts them.
func SizesOf(clients []Client) (s Sizes) {
	slices.SortFunc(clients, func(a, b Client) int { return cmp.Or(cmp.Compare(a.Peak, b.Peak), cmp.Compare(b.Key, a.Key)) })
	var people, shared []Client
	for _, c := range clients {
		if c.Human {
			people = append(people, c)
		}
		if c.Shared {
			shared = append(shared, c)
		}
	}
	s.Clients, s.People, s.Shared = len(clients), len(people), len(shared)
	s.Median, s.P99 = percentile(clients, 500), percentile(clients, 990)
	s.PeopleMost = max(percentile(people, 999), percentile(shared, 1000))
	s.Limit, s.Reference = Round(max(s.PeopleMost, 2*s.P99)), Round(s.P99)
	for _, c := range slices.Backward(clients) {
		if c.Peak <= s.Limit {
			break
		}
		if s.Above++; s.Above <= maxHighest {
			s.Highest = append(s.Highest, c.Key)
		}
	}
	return s
}

// percentile returns the peak that so many thousandths of the sorted clients do not exceed.
func percentile(sorted []Client, thousandths int) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*thousandths+999)/1000-1].Peak
}

// steps are the round numbers from 10 to 99, and with zeros all others from 10 up.
var steps = [...]int64{10, 15, 20, 25, 30, 40, 50, 60, 80}

// Round returns the smallest round number that is at least n.
func Round(n int64) int64 {
	if n <= 10 {
		return max(1, n)
	}
	for scale := int64(1); ; scale *= 10 {
		for _, step := range steps {
			if step*scale >= n {
				return step * scale
			}
		}
	}
}

// enoughClients is how many clients there must be: of fewer, 99 % are all of them.
const enoughClients = 100

var lookBefore = advice.New("replay/suggestion", "before you enforce it, look at who is above it: %s%s")

// Suggest makes a suggestion. Per is the window: "/1m", or empty without one.
func (s *Sizes) Suggest(per string) *Suggestion {
	if s.Clients < enoughClients {
		return &Suggestion{Failure: "too few clients to tell", Reasons: []string{fmt.Sprintf("of the %s, half used at most %s%s, and nobody more than %s%s",
			count(int64(s.Clients), "client"), Count(s.Median), per, Count(s.P99), per)}}
	}
	made := &Suggestion{Reasons: []string{fmt.Sprintf("99 %% of the %s used at most %s%s", count(int64(s.Clients), "client"), Count(s.P99), per)}}
	because := func(format string, args ...any) { made.Reasons = append(made.Reasons, fmt.Sprintf(format, args...)) }
	floor := "at least twice the first figure, and at least the second,"
	switch {
	case s.People == 0:
		because("no client looks like a person, so the rule for people is left out")
		floor = "at least twice the first figure"
	case s.Shared == 0:
		because("99.9 %% of the %s that look like people used at most %s%s", Count(int64(s.People)), Count(s.PeopleMost), per)
	default:
		because("99.9 %% of the %s that look like people, and all %s that look like several, used at most %s%s",
			Count(int64(s.People)), Count(int64(s.Shared)), Count(s.PeopleMost), per)
	}
	because("the smallest round number that is %s is %s%s; clients above it: %s", floor, Count(s.Limit), per, Count(int64(s.Above)))
	if s.Above == 0 {
		made.Failure = fmt.Sprintf("no client has used more than %s%s", Count(s.Limit), per)
		return made
	}
	made.Reasons = append(made.Reasons, lookBefore.With(strings.Join(s.Highest, ", "), more(s.Above-len(s.Highest))).String())
	made.Limit, made.Events = fmt.Sprintf("%d%s", s.Limit, per), s.Limit
	return made
}

var tryHours = advice.New("replay/hours", "see whom %d/1h would refuse, with --try '%s=%d/1h'")

// InAnHour says who stands out in an hour, by the sizes of clients in one, with a limit for a zone that is above all others; nothing if
// nobody does.
func (s *Sizes) InAnHour(zone string) string {
	if s.Clients < enoughClients || s.Above == 0 {
		return ""
	}
	return fmt.Sprintf("in an hour, %s%s used more than %s, which is at least twice what nearly all use: %s",
		strings.Join(s.Highest, ", "), more(s.Above-len(s.Highest)), Count(s.Limit), tryHours.With(s.Limit, zone, s.Limit))
}

func more(n int) string {
	if n <= 0 {
		return ""
	}
	return " and " + Count(int64(n)) + " more"
}
