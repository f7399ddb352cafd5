package caddyratelimit

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Usage sums for each key of a zone the requests that have passed, what they have cost, and the requests that the limit has
// refused, in windows of the clock. All instances that share the store add to the same sums. They are read by the admin
// API and `caddy rate-limit usage`. This is no ledger: an instance that is killed loses about a second.
type Usage struct {
	// How long a window is, from 1m to 24h. A day must be a multiple of it, because windows begin with a day in UTC.
	// Required.
	Window caddy.Duration `json:"window,omitempty"`

	// The number of windows that are kept after they have ended, from 1 to 1000. Default: 168, a week of hours.
	Windows int `json:"windows,omitempty"`
}

const (
	defaultUsageWindows = 168
	maxUsageWindows     = 1000
	day                 = 24 * time.Hour
)

// check checks the windows. The result is nil if it is not to be summed what keys use.
func (u *Usage) check(s *zone.Spec) (*zone.Usage, error) {
	if u == nil {
		return nil, nil
	}
	length, keep := time.Duration(u.Window), cmp.Or(u.Windows, defaultUsageWindows)
	switch {
	case length < time.Minute || length > day || day%length != 0 || length%time.Second != 0:
		return nil, fmt.Errorf("usage window must be from 1m to 24h, and a day a multiple of it, such as 15m, 1h or 24h, got %s", duration.Format(length))
	case keep < 1 || keep > maxUsageWindows:
		return nil, fmt.Errorf("usage windows must be from 1 to %d, got %d", maxUsageWindows, keep)
	}
	return &zone.Usage{Length: length, Keep: keep}, checkReturnable(s, "usage")
}

// checkUsage returns an error if the store does not keep what keys use.
func (h *Handler) checkUsage(s *zone.Spec) error {
	if _, ok := h.store.Store.Store.(store.UsageKeeper); s.Usage != nil && !ok {
		return fmt.Errorf("usage needs a store that keeps sums, such as redis or memory: %s does not", pool.Describe(h.store.Backend))
	}
	return nil
}

// parseUsage parses <window> [<windows>].
func parseUsage(d *caddyfile.Dispenser, z *Zone) (string, error) {
	args := d.RemainingArgs()
	if len(args) != 1 && len(args) != 2 {
		return "", d.Errf("usage takes <window> [<windows>], such as 1h 168, got '%s'", strings.Join(args, " "))
	}
	window, err := option.ParseDuration(args[0])
	if err != nil {
		return "", d.Errf("invalid usage window '%s': %v", args[0], err)
	}
	z.Usage = &Usage{Window: caddy.Duration(window)}
	if len(args) == 2 {
		if z.Usage.Windows, err = strconv.Atoi(args[1]); err != nil {
			return "", d.Errf("usage windows '%s' must be a whole number", args[1])
		}
	}
	return strings.Join(args, " "), nil
}
