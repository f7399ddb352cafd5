// Package why says why a zone refuses a key, until when, and which commands let it through.
package why

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/shell"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

// Fill says in the state of a key why the zone allows or refuses it, and what to do.
func Fill(k *adminapi.Key) {
	if k.RetryAfter > 0 {
		k.Until = At(time.Duration(k.RetryAfter * float64(time.Second)))
	}
	switch {
	case k.Ban == nil:
	case k.Never, k.Ban.Until.IsZero():
		k.Until = time.Time{}
	case k.Ban.Until.After(k.Until):
		k.Until = k.Ban.Until
	}
	said, commands := remedy(k)
	k.Why, k.Commands = explanation(k)+said, commands
}

// At returns the moment after some time from now.
func At(d time.Duration) time.Time { return time.Now().Add(d).UTC().Round(time.Millisecond) }

// is reports whether the key has an outcome.
func is(k *adminapi.Key, o outcome.Outcome) bool { return k.Outcome == outcome.Names[o] }

// explanation says whether the zone refuses the key, and why.
func explanation(k *adminapi.Key) string {
	zone, key := "Zone "+shell.Word(k.Zone), "this key"
	if k.Refused && k.Plan != "" && k.Ban == nil {
		key += " under plan " + shell.Word(k.Plan)
	}
	switch {
	case is(k, outcome.Exempt) && k.Override != nil:
		return zone + " does not limit " + key + ": an override exempts it " + Validity(k.Override) + "."
	case is(k, outcome.Exempt):
		return zone + " does not limit requests without a key (missing_key skip)."
	case is(k, outcome.Rejected):
		return fmt.Sprintf("%s rejects requests without a key with status %d (missing_key reject).", zone, k.Status)
	case is(k, outcome.Allowed):
		return zone + " allows " + key + "."
	case is(k, outcome.DryRun):
		return zone + " would refuse " + key + ", but this is a dry run (enforce): " + reason(k)
	}
	return zone + " is refusing " + key + ": " + reason(k)
}

// reason returns the reason of a refusal, and until when it holds.
func reason(k *adminapi.Key) string {
	switch {
	case k.Ban != nil:
		end := Validity(&adminapi.Override{Kind: adminapi.KindBanned, Until: k.Ban.Until})
		switch {
		case k.Ban.By == adminapi.ByRefusals:
			return "it was refused too often, and is banned " + end + "."
		case k.Override != nil && k.Override.Network != "":
			return "an operator has banned its network " + k.Override.Network + " " + end + Note(k.Override) + "."
		}
		return "an operator has banned it " + end + Note(k.Override) + "."
	case is(k, outcome.DryRun) && !k.QuotaStatus.Refuses():
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
		return fmt.Sprintf("%s %d, and only %d of %d are left. A request that costs at most %d passes now. ",
			of, k.Cost, k.Remaining, k.Quota, k.Remaining) + nextAllowed(k)
	case k.Slots && k.RetryAfter > 0:
		return fmt.Sprintf("%d of %d slots are taken. Next request allowed when a running request ends.", k.Used, k.Quota)
	}
	return fmt.Sprintf("%d of %d used. ", k.Used, k.Quota) + nextAllowed(k)
}

// nextAllowed says when the limit allows the next request.
func nextAllowed(k *adminapi.Key) string {
	next := "at " + format(k.Until)
	if k.Until.IsZero() { // the moment has come since it was refused
		next = "now"
	}
	switch {
	case is(k, outcome.DryRun):
		return "Within the limit again " + next + "."
	case k.Refusals != nil && k.Refusals.Begins:
		ban := time.Duration(k.Refusals.NextBan * float64(time.Second))
		return "The next request is refused, and begins a ban of " + duration.Format(ban.Round(time.Second)) + "."
	}
	return "Next request allowed " + next + "."
}

func format(t time.Time) string { return t.Format(time.RFC3339Nano) }

// Validity says how long an override holds.
func Validity(o *adminapi.Override) string {
	switch {
	case !o.Until.IsZero():
		return "until " + format(o.Until)
	case o.Kind == adminapi.KindBanned:
		return "until it is unbanned"
	}
	return "until it is cleared"
}

// Note says since when an override holds, if that is more than a day, and returns its note, to put behind another text. It is
// empty if there is nothing to say.
func Note(o *adminapi.Override) (text string) {
	if o == nil {
		return ""
	}
	if !o.Since.IsZero() && time.Since(o.Since) >= 24*time.Hour {
		text = fmt.Sprintf(", set %d days ago", int(time.Since(o.Since).Hours()/24))
		text = strings.Replace(text, " 1 days", " 1 day", 1)
		if o.SetBy != "" {
			text += " by " + shell.Word(o.SetBy)
		}
	}
	if o.Note != "" {
		text += ", note: " + shell.Word(o.Note)
	}
	return text
}

const onlyConfig = " Only the config can change that."

// remedy returns what lets the key through, if anything need be done: what is to be said, and the commands.
func remedy(k *adminapi.Key) (said string, commands []adminapi.Command) {
	limited, never := k.QuotaStatus.Refuses(), k.Never
	o := k.Override
	ownLimit := o != nil && o.Kind == adminapi.KindLimit && !o.Elsewhere && o.Network == ""
	forget := ""
	if k.Slots {
		forget = " Once its running requests are forgotten, more than the limit can run at once."
	}
	switch {
	case !k.Refused && k.BlockStatus != 0 && k.Lately != nil && k.Lately.Refused > 0 && !k.Lately.DryRun:
		said = fmt.Sprintf(" But the zone's option block refuses some requests with status %d, whatever the key has used.", k.BlockStatus)
		return said + onlyConfig, []adminapi.Command{{To: "see which requests", Run: run(k, "watch --outcome rejected")}}
	case !k.Refused:
		return "", nil
	case is(k, outcome.Rejected):
		return onlyConfig, nil
	case k.Ban != nil && k.Ban.By == adminapi.ByOverride && k.Override != nil && k.Override.Network != "": // others stay banned
		return "", through(k, "set --exempt")
	case never && ownLimit && k.Ban != nil:
		return "", through(k, "unban", "set --clear")
	case never && ownLimit:
		return "", through(k, "set --clear")
	case never && k.Overrides: // which replaces a ban
		return "", through(k, "set --exempt")
	case never:
		return onlyConfig[:len(onlyConfig)-1] + ": raise the limit, or add the option overrides to the zone and exempt the key.", nil
	case k.Ban == nil || limited && k.Ban.By == adminapi.ByRefusals: // a reset also ends such a ban
		commands = through(k, "reset")
		isOwn := k.PlanFrom == "" && strings.Contains(k.Limit, fmt.Sprintf(" %d/", k.Quota))
		if k.Ban == nil && k.Overrides && k.Override == nil && !k.Slots && isOwn {
			double := run(k, "set")
			double[0] += fmt.Sprintf(" %d", 2*k.Quota)
			commands = append(commands, adminapi.Command{To: "double its limit", Run: double})
		}
		return forget, commands
	case !limited:
		return "", through(k, "unban")
	}
	return forget, through(k, "unban", "reset")
}

// through returns the commands that let a key through.
func through(k *adminapi.Key, names ...string) []adminapi.Command {
	return []adminapi.Command{{To: "let it through now", Run: run(k, names...)}}
}

// run returns commands for a key, each by its name with a flag.
func run(k *adminapi.Key, names ...string) (commands []string) {
	zone, key := shell.Word(k.Zone), shell.Key(k.KeyText)
	if strings.HasPrefix(k.Zone, "-") { // no argument after "--" is a flag
		zone, key = "-- "+zone, strings.TrimPrefix(key, "-- ")
	}
	if encoded, ok := strings.CutPrefix(key, "--key-base64 "); ok {
		zone, key = "--key-base64 "+encoded, zone
	}
	for _, name := range names {
		commands = append(commands, strings.TrimSpace("caddy rate-limit "+name+" "+zone+" "+key))
	}
	return commands
}
