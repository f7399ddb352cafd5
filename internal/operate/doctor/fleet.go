package doctor

import (
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/advice"
)

// member is one of the instances of a fleet.
type member struct {
	adminapi.Instance
	all []adminapi.Instance // the one that compares first
}

// mayBeUnheard reports whether an instance that does not report may just not be heard.
func (m member) mayBeUnheard() bool { return m.all[0].Trouble != "" }

// othersAreWell reports whether another instance takes requests without trouble.
func (m member) othersAreWell() bool {
	return slices.ContainsFunc(m.all, func(i adminapi.Instance) bool { return i.Serves() && i.Trouble == "" })
}

var (
	updateInstance = advice.New("doctor/version", "give all instances the same version of this module, and its Redis user the rights that "+advice.Docs+"redis.md lists")
	defineOne      = advice.New("doctor/agreement", "give it the same limit, key and prefixes everywhere: compare 'caddy rate-limit zones' on each instance")
)

// memberProblems are those of an instance, compared with the others.
var memberProblems = []problem[member]{
	{"instances", warn, func(m member) string {
		return when(m.State == adminapi.StateSilent && !m.mayBeUnheard(),
			"it has not reported for %.0fs: it hangs, was killed, or does not reach the store", m.Age)
	}, advice.New("doctor/instances/silent",
		"see that it runs and reaches the store; what it has counted is lost if it ends")},
	{"instances", unknown, func(m member) string {
		return when(m.State == adminapi.StateMute && !m.mayBeUnheard(), "cannot say what it does: it does not report")
	}, updateInstance},

	{"config", fail, func(m member) string {
		return when(len(m.Differs) > 0 && m.State != adminapi.StateLeft,
			"it has another config than the instance that answers; these zones differ: %s", shorten(m.Differs))
	}, defineOne},

	{"version", warn, func(m member) string {
		return when(m.Serves() && m.Version != m.all[0].Version,
			"it has version %s, and the instance that answers has %s", m.Version, m.all[0].Version)
	}, updateInstance},

	{"outage", warn, func(m member) string { // if no instance is well it is the store, and each instance says so
		return when(m.Trouble != "" && m.Serves() && m.othersAreWell(), "%s; others are well", m.Trouble)
	}, advice.New("doctor/outage", "check the network from that instance to the store")},
}
