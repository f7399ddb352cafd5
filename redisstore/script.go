package redisstore

import (
	"crypto/sha1" //nolint:gosec // the digest by which Redis names scripts
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/lua"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// redisClock is where the script's time comes from, and clockMark stands before it.
	redisClock = "redis.call('TIME')"
	clockMark  = "--[[clock]] "

	// ttlMargin is how much longer a key lives than its state is worth something.
	ttlMargin = time.Second
)

// script is take.lua with the twins of all algorithms.
type script struct {
	text, digest string
	also         func(text string) string // makes other scripts ready, for the same clock
}

// newScript assembles the script. Clock is a Lua expression: a list of seconds and
// microseconds.
func newScript(clock string, margin time.Duration) *script {
	var twins strings.Builder
	for _, name := range algorithms.Names() {
		a, _ := algorithms.Get(name)
		twin := a.Script()
		if strings.Contains(twin, "muldiv(") {
			twin = lua.MulDiv + twin
		}
		fmt.Fprintf(&twins, "if name == %q then\n%s\nend\n", name, twin)
	}
	text := strings.Replace(lua.Take, "--[[algorithms]]", twins.String(), 1)
	text = strings.Replace(text, "--[[counters]]", lua.Counters, 1)
	text = strings.Replace(text, "--[[ban]]", lua.Ban, 1)
	text = strings.Replace(text, "--[[own]]", lua.Own, 1)
	// A number in the text is faster than a variable.
	finish := strings.NewReplacer(
		clockMark+redisClock, clock,
		"MAX_EXACT", "9007199254740992",
		"MAX_STEP_BACK", "86400000000",
		"MAX_SUM", "4503599627370496",
		"MAX_BEHIND", strconv.Itoa(algorithms.MaxBehind),
		"MAX_SHIFTED", strconv.Itoa(algorithms.MaxShifted),
		"MAX_HOLD", strconv.FormatInt(algorithms.MaxHold, 10),
		"NEVER", "-1",
		"BANNED", strconv.Itoa(int(store.KindBanned)),
		"MARGIN_MS", strconv.FormatInt(margin.Milliseconds(), 10),
		"MARGIN_S", strconv.Itoa(int(margin.Seconds())+1), // what is left of a second counts as one
	).Replace
	text = finish(text)
	digest := sha1.Sum([]byte(text)) //nolint:gosec // as above
	return &script{text: text, digest: hex.EncodeToString(digest[:]), also: finish}
}
