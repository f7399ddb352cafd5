package cli

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

// This file has the texts of `get`: why a key is refused, until when, and what can be done.

// keyView is a key with its texts.
type keyView struct{ *adminapi.Key }

// state returns the outcome in a word or two.
func (k keyView) state() string {
	switch k.Outcome {
	case outcome.Names[outcome.Allowed]:
		return "passes"
	case outcome.Names[outcome.DryRun]:
		return "passes, dry run"
	case outcome.Names[outcome.Shed]:
		return outcome.Names[outcome.Limited]
	}
	return k.Outcome
}

// remaining returns what is left, with the unit if a request costs more than 1.
func (k keyView) remaining() string {
	left := strconv.FormatInt(k.Remaining, 10)
	switch {
	case k.CostFrom != "":
		return fmt.Sprintf("%s units; a request takes {%s}, here %d", left, k.CostFrom, k.Cost)
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

// atMost is the beginning of a duration: slots come back when requests end, and at the latest then.
func (k keyView) atMost() string {
	if k.Slots {
		return "at most "
	}
	return ""
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
		views[i] = keyView{&of}
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
	if k.NextAfter > 0 {
		more = k.atMost() + formatSeconds(k.NextAfter)
	}
	return []string{k.state(), fmt.Sprintf("%d of %d", k.Used, k.Quota), k.remaining(), more}
}

// whichPlan says where the plan of a request comes from.
func (k keyView) whichPlan() string {
	text := "The plan of a request is " + k.PlanFrom + "; "
	if k.NoPlan != 0 {
		return text + fmt.Sprintf("requests with none of these plans get status %d.", k.NoPlan)
	}
	return text + "requests with none of these plans have the default."
}

// worthReason reports whether to say more about the key, if it was not named with the zone.
func (k keyView) worthReason() bool {
	return k.BlockedAddress != "" || slices.ContainsFunc(k.byPlan(), func(k keyView) bool {
		_, commands := k.remedy(new(endpoint))
		return k.Refused || commands != nil
	})
}

// printReasons prints why a key passes or not under each plan, and which command changes that. It
// says only once what is the same for several plans.
func (e *endpoint) printReasons(k keyView) {
	said := make(map[string]bool)
	say := func(format, text string) {
		if text != "" && !said[text] {
			said[text] = true
			fmt.Fprintf(e.out, format, text)
		}
	}
	views := slices.DeleteFunc(k.byPlan(), func(k keyView) bool { return len(k.Plans) == 1 && k.Plans[0].Unlimited })
	if refusing := slices.DeleteFunc(slices.Clone(views), func(k keyView) bool { return !k.Refused }); len(refusing) > 0 {
		views = refusing
	}
	for _, view := range views {
		say("\n%s\n", view.explanation())
		hint, commands := view.remedy(e)
		if text := strings.Join(commands, " && "); !said[text] {
			delete(said, hint)
			say("%s\n", hint)
			say("  %s\n", text)
		}
	}
}

// explanation returns a sentence on whether the zone refuses the key, and why.
func (k keyView) explanation() string {
	zone := "Zone " + shellWord(k.Zone)
	if k.Refused && len(k.Plans) == 1 && k.Plan != "" {
		zone += ", plan " + shellWord(k.Plan) + ","
	}
	if k.BlockedAddress != "" {
		return fmt.Sprintf("%s blocks all requests from %s with status %d (block).", zone, k.BlockedAddress, k.BlockStatus)
	}
	switch k.Outcome {
	case outcome.Names[outcome.Exempt]:
		if k.Override != nil {
			return zone + " does not limit it, because of an override that " + formatValidity(k.Override) + "."
		}
		return zone + " does not limit requests without a key (missing_key skip)."
	case outcome.Names[outcome.Rejected]:
		return fmt.Sprintf("%s refuses it with status %d, like all requests without a key (missing_key reject).",
			zone, k.Status)
	case outcome.Names[outcome.Allowed]:
		if k.Others.Refuses() {
			return fmt.Sprintf("%s lets requests pass that its option reserve is for, and refuses others, "+
				"because they have taken %d of %d slots.",
				zone, k.Others.Used, k.Others.Quota)
		}
		return zone + " lets it pass."
	case outcome.Names[outcome.DryRun]:
		return zone + " would refuse it, " + k.reason() + ", but this is a dry run (dry_run, enforce)."
	}
	return zone + " refuses it, " + k.reason() + "."
}

// reason returns the reason of a refusal, and until when it holds.
func (k keyView) reason() string {
	switch {
	case k.Ban != nil && k.Ban.By == adminapi.ByRefusals:
		return "because it was refused too often and is banned until " + formatDeadline(k.Ban.EndsIn)
	case k.Ban != nil:
		return "because an operator has banned it " + formatBanEnd(k.Ban.EndsIn) + formatNote(k.Override)
	case k.Outcome == outcome.Names[outcome.DryRun] && !k.QuotaStatus.Refuses():
		return "because it has no key"
	case k.Quota == 0:
		return "because its limit is 0"
	case k.Never:
		return fmt.Sprintf("because a request takes %d, and the limit never allows more than %d", k.Cost, k.Quota)
	case k.Cost > 1 && k.Remaining > 0:
		return fmt.Sprintf("because a request takes %d, and only %d of %d are left, until %s",
			k.Cost, k.Remaining, k.Quota, formatDeadline(k.RetryAfter))
	case k.Slots && k.RetryAfter > 0:
		return fmt.Sprintf("because %d of %d slots are taken, until one of %s ends (at the latest at %s)",
			k.Used, k.Quota, plural(k.Used, "request"), formatDeadline(k.RetryAfter))
	case k.Outcome == outcome.Names[outcome.Shed]:
		return fmt.Sprintf("because all of its %d slots are taken", k.Quota)
	}
	return fmt.Sprintf("because it has used %d of %d, until %s", k.Used, k.Quota, formatDeadline(k.RetryAfter))
}

// limitRefuses reports whether the limit refuses the key, whatever a ban says, and for how long.
func (k keyView) limitRefuses() (refuses, never bool) {
	if k.Ban != nil {
		return k.Ban.LimitRetryAfter > 0 || k.Ban.LimitNever, k.Ban.LimitNever
	}
	return k.QuotaStatus.Refuses(), k.Never
}

// remedy returns the commands that let the key through, and a hint to print before them.
func (k keyView) remedy(e *endpoint) (hint string, commands []string) {
	limited, never := k.limitRefuses()
	switch {
	case k.BlockedAddress != "":
		return "Only the config can change that.", nil
	case !k.Refused && k.Others.Refuses():
		return "To let other requests through now:", []string{k.command(e, "reset", "")}
	case !k.Refused && k.BlockStatus != 0 && k.Lately != nil && k.Lately.Refused > 0:
		return fmt.Sprintf("But the zone's option block refuses some requests with status %d, whatever the key has used. "+
				"Only the config can change that.\nTo see which requests:", k.BlockStatus),
			[]string{k.command(e, "watch", " --outcome "+outcome.Names[outcome.Rejected])}
	case !k.Refused:
		return "", nil
	case k.Outcome == outcome.Names[outcome.Rejected]:
		return "Only the config can change that.", nil
	}
	// A reset also ends a ban, unless the ban is an override.
	if k.Ban != nil && (k.Ban.By == adminapi.ByOverride || !limited || never) {
		commands = append(commands, k.command(e, "unban", ""))
	}
	switch {
	case never && k.Override != nil && k.Override.Kind == adminapi.KindLimit && !k.Override.Elsewhere:
		commands = append(commands, k.command(e, "set", " --clear"))
	case never && k.Overrides:
		commands = []string{k.command(e, "set", " --exempt")} // replaces a ban
	case never:
		return "Only the config can change that: raise the limit, or add the option overrides to the zone and exempt the key.", nil
	case limited:
		commands = append(commands, k.command(e, "reset", ""))
	}
	if k.Slots && limited && !never {
		return "It passes when a request ends. To let it through now, forget its running requests, so that more than the limit can run at once:", commands
	}
	return "To let it through now:", commands
}

// command returns a command for this key, for a shell.
func (k keyView) command(e *endpoint, name, flags string) string {
	zone, key := shellWord(k.Zone), shellKey(k.KeyText)
	if strings.HasPrefix(k.Zone, "-") { // no argument after "--" is a flag
		zone, key = "-- "+zone, strings.TrimPrefix(key, "-- ")
	}
	if encoded, ok := strings.CutPrefix(key, "--key-base64 "); ok {
		flags, key = flags+" --key-base64 "+encoded, ""
	} else {
		key = " " + key
	}
	return shellWord(os.Args[0]) + " rate-limit " + name + e.flags + flags + " " + zone + key
}

// describeOverride returns an override in one line.
func describeOverride(o *adminapi.Override) string {
	text := o.Kind
	if o.Limit != "" {
		text = o.Limit
	}
	if o.Elsewhere {
		text += ", for plans with another algorithm"
	}
	return text + ", " + formatValidity(o) + formatNote(o)
}

// formatValidity says how long an override holds.
func formatValidity(o *adminapi.Override) string {
	if o.EndsIn > 0 {
		return "holds until " + formatDeadline(o.EndsIn)
	}
	return "holds until it is cleared"
}

// formatNote returns the note of an override in parentheses, or "" if there is none.
func formatNote(o *adminapi.Override) string {
	if o == nil || o.Note == "" {
		return ""
	}
	return " (" + shellWord(o.Note) + ")"
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
	return at.Format(layout) + ", in " + formatSeconds(seconds)
}
