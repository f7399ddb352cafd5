package replay

import (
	"fmt"
	"slices"
)

// Sizes are what a suggestion is made of. They come from the peaks of clients: the most that each has
// used of any window, counted as if nothing had been refused.
type Sizes struct {
	Clients   int
	P99       int64  // 99 % of the clients have a peak of at most this
	People    int    // clients that look like people
	P999      int64  // 99.9 % of those have a peak of at most this
	Person    string // one that has this peak
	Limit     int64  // the smallest round number that is at least P999 and twice P99
	Reference int64  // the smallest round number that is at least P99
	Above     int    // clients whose peak is above Limit
}

// SizesOf measures the peaks of all clients and of those that look like people.
func SizesOf(all, people []int64) (s Sizes) {
	slices.Sort(all)
	slices.Sort(people)
	s.Clients, s.People = len(all), len(people)
	s.P99, s.P999 = percentile(all, 990), percentile(people, 999)
	s.Limit, s.Reference = Round(max(s.P999, 2*s.P99)), Round(s.P99)
	first, _ := slices.BinarySearch(all, s.Limit+1)
	s.Above = len(all) - first
	return s
}

// percentile returns the smallest value that so many thousandths of the sorted values do not exceed.
func percentile(sorted []int64, thousandths int) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*thousandths+999)/1000-1]
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

// mostShare is the share of the refusals, in percent, that the clients above a limit must have.
const mostShare = 80

// Suggest makes a suggestion. Refused is what the reference would refuse, and held is how much of that
// is of the clients above the limit. Per is the window: "/1m", or empty without one.
func (s *Sizes) Suggest(refused, held int64, per string) *Suggestion {
	made := &Suggestion{Reasons: []string{fmt.Sprintf("99 %% of the %s used at most %s%s", count(int64(s.Clients), "client"), Count(s.P99), per)}}
	because := func(format string, args ...any) { made.Reasons = append(made.Reasons, fmt.Sprintf(format, args...)) }
	floor := "the smallest round number that is at least twice that is"
	if s.People > 0 {
		because("99.9 %% of the %s that look like people used at most %s%s", Count(int64(s.People)), Count(s.P999), per)
		floor = "the smallest round number that is at least twice the one and as much as the other is"
	} else {
		because("no client has a login or a cookie in the log, so the rule for people is left out")
	}
	floor = fmt.Sprintf("%s %s%s", floor, Count(s.Limit), per)
	switch {
	case s.Above == 0 && s.P999 > 2*s.P99:
		because("%s, and no client has used more", floor)
		made.Failure = fmt.Sprintf("%s%s was used by a client that looks like a person (%s), and no client has used more than %s%s", Count(s.P999), per, s.Person, Count(s.Limit), per)
		return made
	case s.Above == 0:
		because("%s, and no client has used more", floor)
		made.Failure = fmt.Sprintf("no client has used more than %s%s, which is about twice what nearly all use", Count(s.Limit), per)
		return made
	case refused == 0 || held*100 < mostShare*refused:
		because("%s; clients above it: %s, with only %s of what %s%s would refuse, and it should be %d %%",
			floor, Count(int64(s.Above)), percent(held, refused), Count(s.Reference), per, mostShare)
		made.Failure = "no limit separates a few clients from the others"
		return made
	}
	because("%s; clients above it: %s, with %s of what %s%s would refuse", floor, Count(int64(s.Above)), percent(held, refused), Count(s.Reference), per)
	made.Limit, made.Events = fmt.Sprintf("%d%s", s.Limit, per), s.Limit
	return made
}
