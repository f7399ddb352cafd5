package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

// What lets a key through, or shows more of it. Each command is made of the program and of the rest of its
// arguments.
var (
	changeConfig = advice.New("get/config", "Only the config can change that.")
	raiseLimit   = advice.New("get/config/never", "Only the config can change that: raise the limit, or add the option overrides to the zone and exempt the key.")
	watchBlocked = advice.New("get/blocked", "But the zone's option block refuses some requests with status %d, whatever the key has used. "+
		"Only the config can change that.\nTo see which requests:\n  %s rate-limit watch --outcome rejected%s")
	resetSlots = advice.New("get/slots", "To let it through now, forget its running requests. Then more than the limit can run at once:\n  %s rate-limit reset%s")
	resetKey   = advice.New("get/reset", "To let it through now:\n  %s rate-limit reset%s")
	resetOrSet = advice.New("get/reset/set", "To let it through now:\n  %s rate-limit reset%s\nTo double its limit: %s rate-limit set%s %d")
	unbanKey   = advice.New("get/unban", "To let it through now:\n  %s rate-limit unban%s")
	unbanSlots = advice.New("get/unban/slots", "To let it through now, forget its running requests. Then more than the limit can run at once:\n  %s rate-limit unban%s && %s rate-limit reset%s")
	unbanReset = advice.New("get/unban/reset", "To let it through now:\n  %s rate-limit unban%s && %s rate-limit reset%s")
	unbanClear = advice.New("get/unban/clear", "To let it through now:\n  %s rate-limit unban%s && %s rate-limit set --clear%s")
	clearLimit = advice.New("get/clear", "To let it through now:\n  %s rate-limit set --clear%s")
	exemptKey  = advice.New("get/exempt", "To let it through now:\n  %s rate-limit set --exempt%s")
)

// advise prints what to do, if anything.
func (s *screen) advise(fix advice.Text) {
	if fix != (advice.Text{}) {
		fmt.Fprintln(s.out, fix)
	}
}

// limitRefuses reports whether the limit refuses the key, whatever a ban says, and for how long.
func (k keyView) limitRefuses() (refuses, never bool) {
	if k.Ban != nil {
		return k.Ban.LimitRetryAfter > 0 || k.Ban.LimitNever, k.Ban.LimitNever
	}
	return k.QuotaStatus.Refuses(), k.Never
}

// remedy returns what lets the key through; empty if nothing need be done.
func (k keyView) remedy() advice.Text {
	program, key := shellWord(os.Args[0]), k.arguments()
	limited, never := k.limitRefuses()
	switch {
	case k.BlockedAddress != "":
		return changeConfig.With()
	case !k.Refused && k.BlockStatus != 0 && k.Lately != nil && k.Lately.Refused > 0:
		return watchBlocked.With(k.BlockStatus, program, key)
	case !k.Refused:
		return advice.Text{}
	case k.Outcome == outcome.Names[outcome.Rejected]:
		return changeConfig.With()
	case k.Ban != nil && k.Override != nil && k.Override.Network != "":
		return exemptKey.With(program, key) // the other addresses stay banned
	case never:
		return k.remedyOfConfig(program, key)
	case k.Ban == nil || limited && k.Ban.By == adminapi.ByRefusals: // a reset also ends such a ban
		if k.Slots {
			return resetSlots.With(program, key)
		}
		if k.Ban == nil && k.Overrides && k.Override == nil && len(k.Plans) == 0 && strings.Contains(k.Limit, fmt.Sprintf(" %d/", k.Quota)) {
			return resetOrSet.With(program, key, program, key, 2*k.Quota)
		}
		return resetKey.With(program, key)
	case !limited:
		return unbanKey.With(program, key)
	case k.Slots:
		return unbanSlots.With(program, key, program, key)
	}
	return unbanReset.With(program, key, program, key)
}

// remedyOfConfig returns what lets a key through that its limit never allows.
func (k keyView) remedyOfConfig(program, key string) advice.Text {
	switch limit := k.Override != nil && k.Override.Kind == adminapi.KindLimit && !k.Override.Elsewhere; {
	case limit && k.Ban != nil:
		return unbanClear.With(program, key, program, key)
	case limit:
		return clearLimit.With(program, key)
	case k.Overrides:
		return exemptKey.With(program, key) // replaces a ban
	}
	return raiseLimit.With()
}

// arguments returns the arguments of a command for this key, for a shell, each behind a space.
func (k keyView) arguments() string {
	flags, zone, key := k.flags, shellWord(k.Zone), shellKey(k.KeyText)
	if strings.HasPrefix(k.Zone, "-") { // no argument after "--" is a flag
		zone, key = "-- "+zone, strings.TrimPrefix(key, "-- ")
	}
	if encoded, ok := strings.CutPrefix(key, "--key-base64 "); ok {
		return flags + " --key-base64 " + encoded + " " + zone
	}
	return flags + " " + zone + " " + key
}
