package fleet

import (
	"fmt"
	"strconv"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// Groups has the values of a zone's option group with the most requests, as far as an instance has counted them. Clients choose
// the values.
type Groups struct {
	Counted
	By   string `json:"o"` // the option group
	List Top    `json:"l"`
}

// hashed is the length of the hash at the end of the text of a value that is not whole.
const hashed = 16

// NewGroups returns what is counted by the option group of a zone, without a bound on its size.
func NewGroups(by string, of *topk.Groups) *Groups {
	all, total, since := of.List()
	g := &Groups{newCounted(total, since), by, newSets(all.Unlisted, all.UnlistedBefore)}
	for i := range all.Counts {
		g.add(&g.List, groupText(&all.Counts[i]), &all.Counts[i].Heavy)
	}
	return g
}

// groupText returns the value as reports tell it, which is different for different values.
func groupText(c *topk.GroupCount) adminapi.KeyText {
	if c.Length <= len(c.Value) {
		return adminapi.NewKeyText(c.Value, 0)
	}
	t := adminapi.NewKeyText(fmt.Sprintf("%s%0*x", c.Value, hashed, c.Hash), 0)
	t.Truncated = c.Length
	return t
}

// readGroup reads what groupText has written, and reports whether it has.
func readGroup(t *adminapi.KeyText) (c topk.GroupCount, ok bool) {
	text, err := t.Bytes()
	if c.Value, c.Length = text, len(text); t.Truncated > 0 && len(text) >= hashed {
		c.Value, c.Length = text[:len(text)-hashed], t.Truncated
		c.Hash, _ = strconv.ParseUint(text[len(text)-hashed:], 16, 64)
	}
	written := groupText(&c)
	return c, err == nil && len(c.Value) <= topk.MaxKey && uint64(c.Length) <= mostCount && keyID(&written) == keyID(t)
}

// cut keeps the n first values.
func (g *Groups) cut(most int) { g.List.cut(most) }

// MergeGroups adds up what instances have counted of a zone, and lists the values with at least this share of all requests. It
// leaves out instances whose option group is another than that of the first.
func MergeGroups(share float64, of []*Groups) Merged[topk.GroupCount] {
	var counted []*Counted
	var lists []*Top
	for _, g := range of {
		if g.By == of[0].By {
			counted, lists = append(counted, &g.Counted), append(lists, &g.List)
		}
	}
	m, before := mergeCounted[topk.GroupCount](counted)
	var all topk.GroupList
	var sets []set
	sets, m.Unlisted = mergeSets(lists, before)
	for _, s := range sets {
		if c, ok := readGroup(&s.text); ok {
			c.Heavy = s.Heavy
			all.Counts = append(all.Counts, c)
		}
	}
	m.Top = all.Top(share, m.Requests)
	return m
}

func (g *Groups) isPossible() bool {
	ok := g.Counted.isPossible() && isText(g.By) && g.List.isPossible()
	for i := range g.List.Keys {
		_, isValue := readGroup(&g.List.Keys[i].KeyText)
		ok = ok && isValue
	}
	return ok
}
