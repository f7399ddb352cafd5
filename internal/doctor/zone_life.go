package doctor

import "time"

// Rule is an override of a key.
type Rule struct {
	Ban  bool
	Same bool // it gives the key the limit that the key has anyway

	Ends bool
	Note string
	Age  time.Duration // 0 if it is not known
}

// week is the age from which on rules that nobody explains should be looked at.
const week = 7 * 24 * time.Hour

// overrules finds overrides that change nothing, and emergency rules that nobody has taken back: bans without an end,
// and other overrides with neither an end nor a note.
func overrules(z *Zone) []result {
	if len(z.Rules) == 0 {
		return nil
	}
	var all []result
	same, old := 0, 0
	var oldest Rule
	for _, r := range z.Rules {
		if r.Same {
			same++
		}
		if r.Age < week || r.Ends || !r.Ban && r.Note != "" {
			continue
		}
		if old++; r.Age > oldest.Age {
			oldest = r
		}
	}
	if same > 0 {
		all = append(all, warn(clearSame.With(), "%d of %d overrides give their key the limit that it has anyway", same, len(z.Rules))...)
	}
	if old > 0 {
		note := ""
		if oldest.Note != "" {
			note = ", note: " + oldest.Note
		}
		all = append(all, warn(endRules.With(), "%d of %d overrides hold without an end for more than a week, the oldest for %d days%s", old, len(z.Rules), int(oldest.Age.Hours()/24), note)...)
	}
	if all == nil {
		return ok("%d overrides", len(z.Rules))
	}
	return all
}
