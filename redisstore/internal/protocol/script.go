package protocol

import (
	"crypto/sha1" // the digest by which Redis names scripts
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/lua"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// RedisClock is where the script's time comes from, and clockMark is before it.
	RedisClock = "redis.call('TIME')"
	clockMark  = "--[[clock]] "

	// ReadClock is the line of a script that reads the time, in microseconds since 1970.
	ReadClock = "local time = " + clockMark + RedisClock + "\nlocal now = time[1] * 1000000 + time[2]\n"

	// TTLMargin is how much longer a key lives than its state is worth something.
	TTLMargin = time.Second
)

// Script is take.lua with the Lua ports of all algorithms.
type Script struct {
	Text, Digest string

	finish func(text string) string

	lends sync.Once
	lend  *Script
}

// NewScript assembles the script. Clock is a Lua expression: a list of seconds and
// microseconds.
func NewScript(clock string, margin time.Duration) *Script {
	var ports strings.Builder
	for _, name := range algorithms.Names() {
		a, _ := algorithms.Get(name)
		fmt.Fprintf(&ports, "if name == %q then\n%s\nend\n", name, whole(a))
	}
	text := strings.Replace(lua.Take, "--[[plain]]", lua.Plain, 1)
	text = strings.Replace(text, "--[[counters]]", lua.Counters, 1)
	text = strings.Replace(text, "--[[groups]]", lua.Groups, 1)
	text = strings.Replace(text, "--[[algorithms]]", ports.String(), 1)
	text = strings.Replace(text, "--[[careful]]", lua.Careful, 1)
	text = strings.ReplaceAll(text, "--[[wrongtype]]", lua.WrongType)
	text = strings.ReplaceAll(text, "--[[charge]]", charges())
	text = strings.ReplaceAll(text, "--[[muldiv]]", lua.MulDiv)
	text = strings.ReplaceAll(text, "--[[write]]", lua.Write)
	text = strings.Replace(text, "--[[ban]]", lua.Ban, 1)
	text = strings.Replace(text, "--[[override]]", lua.Override, 1)
	// A number in the text is faster than a variable.
	finish := strings.NewReplacer(
		clockMark+RedisClock, clock,
		"MAX_EXACT", "9007199254740992",
		"MAX_STEP_BACK", "3155760000000000",
		"DAY", "86400000000",
		"MAX_SUM", "4503599627370496",
		"MAX_BEHIND", strconv.Itoa(algorithms.MaxBehind),
		"MAX_SHIFTED", strconv.Itoa(algorithms.MaxShifted),
		"LONGEST_LEASE", strconv.FormatInt(algorithms.MaxLease.Microseconds(), 10),
		"MAX_HOLD", strconv.FormatInt(algorithms.MaxHold, 10),
		"NEVER", "-1",
		"BANNED", strconv.Itoa(int(store.KindBanned)),
		"MARGIN_MS", strconv.FormatInt(margin.Milliseconds(), 10),
		"MARGIN_S", strconv.Itoa(int(margin.Seconds())+1), // what is left of a second counts as one
		"MARGIN", strconv.Itoa(int(margin.Seconds())),
	).Replace
	s := TextScript(finish(text))
	s.finish = finish
	return s
}

// whole returns the port of an algorithm with the functions that it needs.
func whole(a algorithms.Algorithm) string {
	if port := a.Script(); strings.Contains(port, "muldiv(") {
		return lua.MulDiv + port
	}
	return a.Script()
}

// charges returns the parts of the Counters' ports that charge, as plain.lua and counters.lua inline
// them.
func charges() string {
	var b strings.Builder
	word := "if"
	for _, name := range slices.Backward(algorithms.Names()) { // the token bucket, the default, first
		if a, _ := algorithms.Get(name); isCounter(a) {
			fmt.Fprintf(&b, "%s name == %q then\n%s\n", word, name, charge(a))
			word = "elseif"
		}
	}
	return b.String() + "end"
}

// inlined matches the part of a port that charges: the names of the parameters and the state, the
// text, and its results.
var inlined = regexp.MustCompile(`(?s)\ntake = function\(now, cost, ([^)]*)\)\n(.*)--\[\[charged (.*?)\]\]`)

// charge returns the part of a Counter's port that charges. Its parameters and its state get the
// names that they have where the part is inlined, because an assignment costs time in each call. A
// port that does not say which part that is decides as usual.
func charge(a algorithms.Algorithm) string {
	if part := inlined.FindStringSubmatch(a.Script()); part != nil {
		text := part[2]
		for i, result := range strings.Split(part[3], ", ") { // faster than all at once
			text += fmt.Sprintf("%s = %s\n", [...]string{"ok", "room", "till", "x", "y", "z"}[i], result)
		}
		to := [...]string{"p1", "p2", "p3", "p4", "p5", "p6", "s1", "s2", "s3"}
		for i, name := range strings.Split(part[1], ", ") {
			if name != "_" {
				text = regexp.MustCompile(`\b`+name+`\b`).ReplaceAllString(text, to[i])
			}
		}
		return text
	}
	return "local take, op, reset, _ = nil, 0\n" + whole(a) + `
ok, _, room, _, _, reset, _, x, y, z = take(now, cost, p1, p2, p3, p4, p5, p6, s1, s2, s3)
till = now + reset`
}

// TextScript returns a script with a text that needs no change.
func TextScript(text string) *Script {
	digest := sha1.Sum([]byte(text)) // as above
	return &Script{Text: text, Digest: hex.EncodeToString(digest[:])}
}

// Finish completes another script, for the same clock.
func (s *Script) Finish(text string) string { return s.finish(text) }
