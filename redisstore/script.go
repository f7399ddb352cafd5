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
)

const (
	// redisClock is where the script's time comes from.
	redisClock = "redis.call('TIME')"

	// ttlMargin is how much longer a key lives than its state is worth something.
	ttlMargin = time.Second
)

// script is take.lua with the twins of all algorithms.
type script struct{ text, digest string }

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
	text = strings.Replace(text, "--[[clock]] "+redisClock, clock, 1)
	// A number in the text is faster than a variable.
	text = strings.NewReplacer(
		"MAX_EXACT", "9007199254740992",
		"MAX_STEP_BACK", "86400000000",
		"NEVER", "-1",
		"MARGIN_MS", strconv.FormatInt(margin.Milliseconds(), 10),
		"MARGIN_S", strconv.Itoa(int(margin.Seconds())+1), // what is left of a second counts as one
	).Replace(text)
	digest := sha1.Sum([]byte(text)) //nolint:gosec // as above
	return &script{text: text, digest: hex.EncodeToString(digest[:])}
}
