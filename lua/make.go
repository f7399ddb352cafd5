package lua

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// numbers are what words are replaced by. Tests find the margin, which is how much longer a key lives than its state
// is worth something, by its comment.
var numbers = map[string]string{
	"MAX_EXACT":     "9007199254740992",
	"MAX_STEP_BACK": "3155760000000000",
	"DAY":           "86400000000",
	"MAX_SUM":       "4503599627370496",
	"MAX_BEHIND":    strconv.Itoa(algorithms.MaxBehind),
	"MAX_SHIFTED":   strconv.Itoa(algorithms.MaxShifted),
	"LONGEST_LEASE": strconv.FormatInt(algorithms.MaxLease.Microseconds(), 10),
	"MAX_SLOT_COST": strconv.FormatInt(algorithms.MaxSlotCost, 10),
	"NEVER":         "-1",
	"EXPIRED":       "'0'",              // the text of a charge in a log that has left each window
	"FIRST_MARK":    "1500000000000000", // above the scores of all processes, in milliseconds, and below the time in microseconds
	"BANNED":        strconv.Itoa(int(store.KindBanned)),
	"MARGIN":        "1--[[MARGIN]]",
	"MARGIN_S":      "2--[[MARGIN_S]]", // what is left of a second counts as one
	"MARGIN_MS":     "1000--[[MARGIN_MS]]",
}

var (
	marker  = regexp.MustCompile(`(?m)^( *)--\[\[(include|charge) (\S+)\]\]\n`)
	charges = regexp.MustCompile(`(?s)\ntake = function\(now, cost, ([^)]*)\)\n(.*)  return ([^\n]*)\nend\n`)
	comment = regexp.MustCompile(`(?m)^ *(--.*)?\n`)
	word    = regexp.MustCompile(`\b[A-Z][A-Z_]+\b`)
)

// texts returns the scripts by name. It puts them together once, when they are first needed.
//
// A line --[[include part.lua]] is replaced by a part, and --[[charge port.lua]] by what take of a Counter's port
// does, with the names that charge.lua has for its parameters and results. Lines of comments
// are left out. A number in a text is faster than a variable, so words in capitals are replaced by numbers.
var texts = sync.OnceValue(func() map[Script]string {
	made := make(map[Script]string)
	for _, name := range whole {
		text := comment.ReplaceAllString(part(string(name)), "")
		made[name] = word.ReplaceAllStringFunc(text, func(word string) string { return cmp.Or(numbers[word], word) })
	}
	return made
})

// part returns a part with all that it includes.
func part(name string) string {
	text, err := parts.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return expand(string(text))
}

// expand puts parts where a text includes them, as far to the right as the marks.
func expand(text string) string {
	return marker.ReplaceAllStringFunc(text, func(mark string) string {
		found := marker.FindStringSubmatch(mark)
		part := part(found[3])
		if found[2] == "charge" {
			part = charge(part)
		}
		return found[1] + strings.TrimSuffix(strings.ReplaceAll(part, "\n", "\n"+found[1]), found[1])
	})
}

// charge returns the part of a Counter's port that charges. Its parameters and its state get the names that they have
// where it is put, because an assignment costs time in each call.
func charge(port string) string {
	part := charges.FindStringSubmatch(port)
	text := part[2]
	results := strings.Split(part[3], ", ")
	for i, name := range []string{"ok", "room", "till", "x", "y", "z"} { // faster than all at once
		text += fmt.Sprintf("%s = %s\n", name, results[i])
	}
	to := [...]string{"p1", "p2", "p3", "p4", "p5", "p6", "s1", "s2", "s3"}
	for i, name := range strings.Split(part[1], ", ") {
		if name != "_" {
			text = regexp.MustCompile(`\b`+name+`\b`).ReplaceAllString(text, to[i])
		}
	}
	return expand(strings.ReplaceAll(text, "--[[muldiv]]", "--[[include muldiv.lua]]"))
}
