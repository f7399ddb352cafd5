package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

// This file has the texts of `get`: why a key is refused, until when, and what can be done.

// keyView is a key with its texts.
type keyView struct {
	*adminapi.Key
	flags string // the flags that name the instances, for commands
	named bool   // sentences name the key, because there are several
}

// state returns the outcome in words.
func (k keyView) state() string {
	return strings.ReplaceAll(k.Outcome, "_", " ")
}

// used returns what is used of the quota, and how much of that is a debt.
func (k keyView) used() string {
	text := fmt.Sprintf("%d of %d", k.Used, k.Quota)
	if k.Owed > 0 {
		text += fmt.Sprintf(" (%d owed)", k.Owed)
	}
	return text
}

// remaining returns what is left, with the unit if a request costs more than 1.
func (k keyView) remaining() string {
	left := strconv.FormatInt(k.Remaining, 10)
	switch {
	case k.CostFrom != "":
		return fmt.Sprintf("%s units; a request costs {%s}, here %d", left, k.CostFrom, k.Cost)
	case k.Cost > 1:
		return fmt.Sprintf("%s units, for %s of %d each", left, plural(k.Remaining/k.Cost, "request"), k.Cost)
	}
	return left
}

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// byPlan returns a view for each plan of the zone, or the key itself without plans.
func (k keyView) byPlan() []keyView {
	if len(k.Plans) == 0 {
		return []keyView{k}
	}
	views := make([]keyView, len(k.Plans))
	for i, plan := range k.Plans {
		of := *k.Key
		of.Plan, of.Assumed, of.Outcome, of.Refused, of.QuotaStatus, of.Slots = plan.Plan, plan.Assumed, plan.Outcome, plan.Refused, plan.QuotaStatus, plan.Slots
		of.Plans = []adminapi.PlanStatus{plan}
		views[i] = keyView{&of, k.flags, k.named}
	}
	return views
}

// planName returns the name of the plan that the numbers are for.
func (k keyView) planName() string {
	switch {
	case len(k.Plans) != 1:
		return orDash(k.Plan)
	case k.Plan == "":
		return "(default)"
	case k.Plans[0].Default:
		return shellWord(k.Plan) + " (default)"
	}
	return shellWord(k.Plan)
}

// numbers returns the cells of a table: state, used, remaining, more in.
func (k keyView) numbers() []string {
	if len(k.Plans) == 1 && k.Plans[0].Unlimited {
		return []string{"unlimited", "-", "-", "-"}
	}
	more := "-"
	if k.NextAfter > 0 && !k.Slots { // slots come back when requests end
		more = formatSeconds(k.NextAfter)
	}
	return []string{k.state(), k.used(), k.remaining(), more}
}

// whichPlan says where the plan of a request comes from.
func (k keyView) whichPlan() string {
	text := "The plan of a request is " + k.PlanFrom + "; "
	if k.NoPlan != 0 {
		return text + fmt.Sprintf("requests with none of these plans get status %d.", k.NoPlan)
	}
	return text + "requests with none of these plans get the default."
}

// plansWithoutOverride returns the plans under which the limit of the key's own does not hold.
func (k keyView) plansWithoutOverride() (names []string) {
	for _, plan := range k.Plans {
		if plan.Elsewhere {
			names = append(names, shellWord(plan.Plan))
		}
	}
	return names
}

// enumerate returns one name or several, behind what they are.
func enumerate(what string, names []string) string {
	if len(names) > 1 {
		what += "s"
	}
	return what + " " + strings.Join(names, ", ")
}

// isTolerated reports whether the key is above the limit, and passes all the same.
func (k keyView) isTolerated() bool {
	return k.Outcome == outcome.Names[outcome.DryRun]
}

// worthReason reports whether to say more about the key, if the zone was not named.
func (k keyView) worthReason() bool {
	return k.BlockedAddress != "" || slices.ContainsFunc(k.byPlan(), func(k keyView) bool {
		return k.Refused || k.remedy() != (advice.Text{}) || k.isTolerated()
	})
}

// reason says why a zone allows or refuses a key, and which commands change that.
type reason struct {
	text string
	fix  advice.Text
}

// printReasons prints why keys are allowed or refused, under each plan, and which commands change that. It says only once what is the same for several of them, and nothing of keys
// that are not worth it.
func (s *screen) printReasons(keys []keyView, worth func(keyView) bool) {
	var reasons []reason
	for _, k := range keys {
		if !worth(k) {
			continue
		}
		for _, view := range k.worthReasons(keys) {
			r := reason{text: view.explanation(), fix: view.remedy()}
			if !slices.Contains(reasons, r) {
				reasons = append(reasons, r)
			}
		}
	}
	for i, r := range reasons {
		fmt.Fprintln(s.out)
		fmt.Fprintln(s.out, r.text)
		if i+1 < len(reasons) && reasons[i+1].fix == r.fix {
			continue // once for both
		}
		s.advise(r.fix)
	}
}

// worthReasons returns the views of a key whose reasons are worth printing, beside those of these other
// keys: those that refuse the key, if there are any in the zone.
func (k keyView) worthReasons(keys []keyView) []keyView {
	refuses := slices.ContainsFunc(keys, func(other keyView) bool {
		return other.Zone == k.Zone && slices.ContainsFunc(other.byPlan(), func(view keyView) bool { return view.Refused })
	})
	return slices.DeleteFunc(k.byPlan(), func(view keyView) bool {
		return len(view.Plans) == 1 && view.Plans[0].Unlimited || refuses && !view.Refused
	})
}

// explanation says whether the zone refuses the key, and why.
func (k keyView) explanation() string {
	zone, key := "Zone "+shellWord(k.Zone), "this key"
	if k.named {
		key = showKey(k.KeyText)
	}
	if k.Refused && len(k.Plans) == 1 && k.Plan != "" && k.Ban == nil {
		key += " under plan " + shellWord(k.Plan)
	}
	if k.BlockedAddress != "" {
		return fmt.Sprintf("%s blocks all requests from %s with status %d (block).", zone, k.BlockedAddress, k.BlockStatus)
	}
	switch k.Outcome {
	case outcome.Names[outcome.Exempt]:
		if k.Override != nil {
			return zone + " does not limit " + key + ": an override exempts it " + formatValidity(k.Override) + "."
		}
		return zone + " does not limit requests without a key (missing_key skip)."
	case outcome.Names[outcome.Rejected]:
		return fmt.Sprintf("%s rejects requests without a key with status %d (missing_key reject).", zone, k.Status)
	case outcome.Names[outcome.Allowed]:
		return zone + " allows " + key + "."
	case outcome.Names[outcome.DryRun]:
		return zone + " would refuse " + key + ", but this is a dry run (enforce): " + k.reason()
	}
	return zone + " is refusing " + key + ": " + k.reason()
}

// reason returns the reason of a refusal, and until when it holds.
func (k keyView) reason() string {
	switch {
	case k.Ban != nil && k.Ban.By == adminapi.ByRefusals:
		return "it was refused too often, and is banned " + formatBanEnd(k.Ban.EndsIn) + "."
	case k.Ban != nil:
		if k.Override != nil && k.Override.Network != "" {
			return "an operator has banned its network " + k.Override.Network + " " + formatBanEnd(k.Ban.EndsIn) + formatNote(k.Override) + "."
		}
		return "an operator has banned it " + formatBanEnd(k.Ban.EndsIn) + formatNote(k.Override) + "."
	case k.Outcome == outcome.Names[outcome.DryRun] && !k.QuotaStatus.Refuses():
		return "it has no value."
	case k.Quota == 0:
		return "its limit is 0."
	case k.Never:
		return fmt.Sprintf("a request costs %d, and the limit never allows more than %d.", k.Cost, k.Quota)
	case k.Cost > 1 && k.Remaining > 0:
		of := "a request costs"
		if k.CostLast {
			of = "its last request cost"
		}
		return fmt.Sprintf("%s %d, and only %d of %d are left. A request that costs at most %d passes now. ", of, k.Cost, k.Remaining, k.Quota, k.Remaining) + k.nextAllowed()
	case k.Slots && k.RetryAfter > 0:
		return fmt.Sprintf("%d of %d slots are taken. Next request allowed when one of %s ends.", k.Used, k.Quota, plural(k.Used, "request"))
	}
	return fmt.Sprintf("%d of %d used. ", k.Used, k.Quota) + k.nextAllowed()
}

// nextAllowed says when the limit allows the next request.
func (k keyView) nextAllowed() string {
	if k.Refusals != nil && k.Refusals.Begins && !k.isTolerated() {
		return "The next request is refused, and begins a ban of " + formatSeconds(k.Refusals.NextBan) + "."
	}
	if k.isTolerated() {
		return "Within the limit again at " + formatDeadline(k.RetryAfter) + "."
	}
	return "Next request allowed at " + formatDeadline(k.RetryAfter) + "."
}

// describeOverride returns an override in one line.
func describeOverride(o *adminapi.Override) string {
	text := cmp.Or(o.Limit, o.Kind)
	if o.Network != "" {
		text += " as all of " + o.Network
	}
	if o.Elsewhere {
		text += " for plans with another algorithm,"
	}
	return text + " " + formatValidity(o) + formatNote(o)
}

// kindBanned is the kind of an override that is a ban.
const kindBanned = "banned"

// formatValidity says how long an override holds.
func formatValidity(o *adminapi.Override) string {
	if o.EndsIn > 0 {
		return "until " + formatDeadline(o.EndsIn)
	}
	if o.Kind == kindBanned {
		return "until it is unbanned"
	}
	return "until it is cleared"
}

// formatNote says since when an override holds, if that is more than a day, and returns its note, to put behind
// another text. It is "" if there is nothing to say.
func formatNote(o *adminapi.Override) string {
	if o == nil {
		return ""
	}
	text := ""
	if o.Since != nil && time.Since(*o.Since) >= 24*time.Hour {
		text = ", set " + plural(int64(time.Since(*o.Since).Hours()/24), "day") + " ago"
		if o.SetBy != "" {
			text += " by " + shellWord(o.SetBy)
		}
	}
	if o.Note != "" {
		text += ", note: " + shellWord(o.Note)
	}
	return text
}

// formatBanEnd says when a ban ends, in seconds from now, or 0 for a ban without an end.
func formatBanEnd(seconds float64) string {
	if seconds > 0 {
		return "until " + formatDeadline(seconds)
	}
	return "until it is unbanned"
}

// formatDeadline returns a time, given in seconds from now.
func formatDeadline(seconds float64) string {
	at, layout := time.Now().Add(time.Duration(seconds*float64(time.Second))), time.TimeOnly
	if at.YearDay() != time.Now().YearDay() || seconds > 24*3600 {
		layout = time.DateTime
	}
	return at.Format(layout) + " (in " + formatSeconds(seconds) + ")"
}
