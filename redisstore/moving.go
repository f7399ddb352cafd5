package redisstore

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/lua"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// While a slot is on its way from one node to another, its keys may be at either, and no
// call can have two of them. So each key is asked by itself: what stands above a limit
// first, and then the state, by what that says. This takes several calls and not one
// instant: a setting or a ban that changes between them holds from the next request on.

// takeMoving decides a question whose keys may be at two nodes, one key after the other.
func (s *Store) takeMoving(ctx context.Context, q *question, checks []store.Check) error {
	parts := q.split(checks, func(i *item) string { return i.key })
	for _, p := range parts {
		p.pass() // until it is asked
	}
	return s.inTurn(ctx, q, parts, checks, s.askMoving)
}

// askMoving decides a part that has one key, and what is beside that.
func (s *Store) askMoving(ctx context.Context, p *part, _ []store.Check) error {
	p.asked = true
	i := &p.items[0]
	above := i.sanctions
	if above == nil {
		return s.ask(ctx, p.question)
	}
	i.sanctions = nil
	d := &p.decisions[i.index]
	setting, now, err := s.readSetting(ctx, above, i)
	if err != nil {
		return err
	}
	if setting != nil && setting.Kind == store.KindExempt {
		*d = algorithms.Decision{Allowed: true, Exempt: true, At: now}
		return nil
	}
	own := i.use(setting)
	left := int64(0)
	if setting != nil && setting.Kind == store.KindBanned {
		left = setting.For.Microseconds()
		if left == 0 {
			left = -1
		}
	} else if above.ban != nil {
		if left, err = s.evalBan(ctx, leftScript, above); err != nil {
			return err
		}
	}
	if left != 0 {
		i.cost = 0 // a key that is banned is not charged
	}
	if err = s.ask(ctx, p.question); err != nil {
		return err
	}
	d.Override = own
	if left == 0 && !d.Allowed && above.ban != nil && i.op != opPeek {
		left, err = s.evalBan(ctx, refusedScript, above)
		d.BanBegins = left > 0 && err == nil
	}
	if left != 0 {
		*d = d.Ban(left)
	}
	return nil
}

// use has an item counted by the key's own limit, if it has one, and says by which.
func (i *item) use(setting *store.PreparedOverride) (own string) {
	if !setting.ReplacesLimit(i.rule) {
		return ""
	}
	i.prepared = setting.Prepared(i.prepared)
	i.key = strings.TrimSuffix(i.key, i.rule.ID()) + setting.States(i.rule.States()).ID
	return setting.Encoded()
}

// readSetting reads what a key has in place of its limit, nil if nothing, and the time.
func (s *Store) readSetting(ctx context.Context, above *sanctions, i *item) (*store.PreparedOverride, int64, error) {
	if above.setting == "" {
		return nil, 0, nil
	}
	text, err := s.evalGuarded(ctx, getScript, above.setting)
	if err != nil {
		return nil, 0, err
	}
	if len(text) < 8 {
		return nil, 0, errors.New("redis answered no time")
	}
	now := int64(binary.BigEndian.Uint64([]byte(text[:8])))
	setting, err := store.ParseOverride(text[8:], now)
	if err != nil || setting.Kind == store.KindNone {
		return nil, now, nil // a damaged one counts as none
	}
	kept := setting.For // what is left may be less than a setting may have
	setting.For = 0
	own, err := i.rule.PrepareOverride(setting)
	if err != nil {
		return nil, now, nil
	}
	own.For = kept
	return own, now, nil
}

// The scripts for the state of a ban.
var (
	// leftScript gets a ban's parameters, and returns how long it holds still.
	leftScript = clockLine + banLine + `
return struct.pack('>i8', ban_left(now, within, longest, state()) or 0)`

	// refusedScript counts a refusal.
	refusedScript = clockLine + banLine + `
local left, till, since, count, life = ban_refused(now, first, after, within, longest, state())
redis.call('SET', KEYS[1], struct.pack('>i8i8i8', till, since, count), 'PX', math.floor(life / 1000) + MARGIN_MS)
return struct.pack('>i8', left or 0)`
)

// banLine has the functions of the twin and the state.
var banLine = "local ban_left, ban_refused\n" + lua.Ban + `
local first, after, within, longest = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local function state()
  local value = redis.pcall('GET', KEYS[1])
  if type(value) ~= 'string' or #value ~= 24 then return 0, 0, 0 end
  return struct.unpack('>i8i8i8', value)
end`

// evalBan runs a script on the state of a ban.
func (s *Store) evalBan(ctx context.Context, script string, above *sanctions) (int64, error) {
	var args []any
	for _, p := range above.ban.Params() {
		args = append(args, p)
	}
	text, err := s.evalGuarded(ctx, script, above.banned, args...)
	if err == nil && len(text) != 8 {
		err = errors.New("redis answered no number")
	}
	if err != nil {
		return 0, err
	}
	return int64(binary.BigEndian.Uint64([]byte(text))), nil
}
