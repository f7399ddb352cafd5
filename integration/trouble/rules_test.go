package trouble_test

import (
	"fmt"
	"net/http"
)

// promise is what docs/failure.md says about a client of a cell. Numbers are requests.
type promise struct {
	// who may decide requests during the fault: Redis lets pass and refuses, or only refuses; the share of
	// the instance; and on_store_error allow and deny
	redis, refused, share, nobody bool

	// shares says that both instances let exactly their share pass during the fault.
	shares bool

	// least and most are how many requests pass in all by decisions of Redis.
	least, most int64
}

// promised returns what holds for a client. It returns false if nothing is said about the cell.
func (c *cell) promised(client string) (p promise, ok bool) {
	p, ok = c.deciders(c.fault, client)
	whole := c.allowed(client) / c.cost
	p.least, p.most = whole, whole
	c.bound(client, whole, &p)
	return p, ok
}

// deciders returns who may decide requests of a client during a fault. It is the place where docs/failure.md is put
// into numbers, with [cell.bound]. It returns false if nothing is said about that.
func (c *cell) deciders(fault *fault, client string) (p promise, ok bool) {
	policy, known := c.policyDecides()
	if !known {
		return p, false
	}
	// "A Redis that is full or may not write": refusals and what needs no memory or no write.
	needsNothing := client == "used up" || client == "banned" || client == "barred" || client == "exempt"
	switch fault.class {
	case harmless:
		p.redis = true
	case full:
		// "States of a fixed size are charged as usual. A charge that needs memory is decided by each instance in
		// its own memory, with allow and deny, too."
		switch {
		case needsNothing, c.fixed && client != "fresh":
			p.redis = true
		default:
			p.share, p.shares, p.redis = true, !c.lends, c.lends
		}
	case unwritable:
		if needsNothing {
			p.redis = true
		} else {
			p = policy(p)
		}
	case unanswered, forgotten:
		p = policy(p)
		p.refused = c.remembers(client)
	case single, unallowed, moved:
		p = policy(p)
		p.shares, p.redis = false, true
	default:
		return p, false
	}
	p.redis = p.redis || c.lends // what is lent is decided without Redis, until it is spent
	p.shares = p.shares && !c.lends && !p.refused && client != "pending"
	p.redis = p.redis || client == "exempt" && c.policy == "allow" // which no answer tells apart
	return p, true
}

// policyDecides returns what on_store_error promises for requests that Redis does not decide.
func (c *cell) policyDecides() (apply func(promise) promise, known bool) {
	switch c.policy {
	case "allow", "deny":
		return func(p promise) promise { p.nobody = true; return p }, true
	case "local":
		return func(p promise) promise { p.share, p.shares = true, true; return p }, true
	}
	return nil, false
}

// remembers reports whether instances may refuse a client although Redis does not answer: by deny_cache, or
// because of what they know of a limit that is lent.
func (c *cell) remembers(client string) bool {
	return c.lends || c.remember && (client == "used up" || client == "banned" || client == "barred")
}

// bound sets how many requests of a client Redis lets pass in all.
func (c *cell) bound(client string, whole int64, p *promise) {
	y := c.tallies[client]
	done := y.count(before, byRedis, true)
	if client == "pending" {
		// Three requests that cost 1 when they come. In the end, each costs 3 or nothing.
		if c.special == "late" {
			p.least, p.most = whole-6, whole-6
			if c.fault.doubt { // a late cost may be lost if its call was
				p.most = whole
			}
		} else {
			p.least, p.most = whole+3-c.tolerance, whole+3
			if c.fault.doubt {
				p.least = whole
			}
		}
	}
	switch {
	case c.fault.class == forgotten:
		// Redis "allows the limit once more", and knows no overrides and bans. A late cost or a refund may find
		// nothing that it changes.
		p.least, p.most = done+c.limit/c.cost, done+c.limit/c.cost
		if client == "pending" {
			p.least -= 9
		}
		if c.remembers(client) {
			p.least = done
		}
	case c.fault.doubt:
		// "A request whose answer was lost may have been charged."
		p.least = max(done, p.least-c.undecided(client))
	}
	if client == "pending" && c.lends && c.special == "late" {
		// "Other instances may spend what they hold. At most that much is admitted on top, once."
		p.most += whole / 2
	}
	if c.lends && c.fault.class != harmless {
		// "An instance is lent at most half of what is free", and what it does not report counts as spent.
		p.least = min(p.least, done+(whole-done)/4-1)
	}
	if c.fault.class == forgotten && c.lends {
		p.most += whole // what was lent before is spent in the end
	}
}

// undecided is how many requests of a client Redis may have charged although nobody was told.
func (c *cell) undecided(client string) (n int64) {
	y := c.tallies[client]
	for phase := range phases {
		for _, by := range []by{byNobody, byShare} {
			n += y.count(phase, by, true) + y.count(phase, by, false)
		}
	}
	return n
}

// check compares what a client got with what was promised.
func (c *cell) check(client string, p promise) (wrong []string) {
	y := c.tallies[client]
	fail := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for phase := range phases {
		for n, a := range y.answers[phase] {
			if text := c.judge(phase == during, c.fault.timeout > 0, a, p); text != "" {
				fail("%s, request %d: %s: %+v", [phases]string{"before", "during", "after"}[phase], n+1, text, a)
				break
			}
		}
	}
	if client == "exempt" || client == "barred" {
		return wrong
	}
	for i, n := range y.local {
		if n*c.cost > c.share || p.shares && n != c.share/c.cost {
			fail("instance %d let %d pass by its share, which is %d", i+1, n, c.share/c.cost)
		}
	}
	if n := y.total(byRedis, true); n < p.least || n > p.most {
		fail("Redis let %d pass (%d before, %d during, %d after), want %d to %d", n,
			y.count(before, byRedis, true), y.count(during, byRedis, true), y.count(after, byRedis, true), p.least, p.most)
	}
	return wrong
}

// judge returns what is wrong with an answer during a fault, or at a time at which Redis should decide, unless an
// answer may be late then.
func (c *cell) judge(during, late bool, a answer, p promise) string {
	if !a.passed && a.by != byNobody && a.status != http.StatusTooManyRequests {
		return fmt.Sprintf("the status of a refusal is %d", a.status)
	}
	switch {
	case a.by == byNobody && c.policy == "local":
		return "on_store_error is local"
	case a.by == byNobody && a.passed != (c.policy == "allow"):
		return "on_store_error is " + c.policy
	case !during:
		if a.by != byRedis && !late {
			return "Redis should decide"
		}
	case a.by == byRedis && a.passed && !p.redis, a.by == byRedis && !p.redis && !p.refused:
		return "Redis cannot decide"
	case a.by == byShare && !p.share, a.by == byNobody && !p.nobody:
		return "Redis should decide"
	}
	return ""
}

// charged returns how much the state of a client may have in the end, when all that was lent is given back.
func (c *cell) charged(client string) (least, most int64) {
	y := c.tallies[client]
	passed := y.total(byRedis, true)
	if c.fault.class == forgotten {
		passed = y.count(after, byRedis, true)
	}
	least, most = passed*c.cost, passed*c.cost
	switch {
	case c.slots:
		return 0, 0
	case c.fault.class == forgotten && (c.lends || client == "pending"):
		return 0, c.limit + 9
	case client == "pending" && c.special == "late":
		least, most = least+6, most+6
		if c.fault.doubt {
			least -= 6
		}
	case client == "pending":
		least, most = least-3, most-3+c.tolerance
		if c.fault.doubt {
			most += 3
		}
	}
	if c.fault.doubt {
		most += c.undecided(client) * c.cost
	}
	if c.lends && c.fault.class != harmless {
		most = max(most, c.limit+9)
	}
	return least, most
}
