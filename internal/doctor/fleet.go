package doctor

import (
	"maps"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/advice"
)

// Members are the instances of a fleet, compared.
type Members struct {
	All []adminapi.Instance // the one that compares first

	// Troubled are the instances, by name, whose store fails them, and how.
	Troubled map[string]string

	// Unchecked are those whose findings have not come in time.
	Unchecked []string
}

// member is one of the instances.
type member struct {
	adminapi.Instance
	of *Members
}

// Compare makes the checks that need all instances, of those that report. While a store does not answer, these are few.
func Compare(m *Members) []adminapi.Finding {
	var e examination
	for _, i := range m.All {
		look(&e, adminapi.Finding{}, memberProblems, member{i, m})
	}
	look(&e, adminapi.Finding{}, fleetProblems, m)
	slices.SortStableFunc(e.found, adminapi.WorseFirst)
	return e.found
}

// mayBeUnheard reports whether an instance that does not report may just not be heard.
func (m *Members) mayBeUnheard() bool { return m.Troubled[m.All[0].Name] != "" }

// serving returns the instances that take requests.
func (m *Members) serving() []adminapi.Instance {
	return slices.DeleteFunc(slices.Clone(m.All), func(i adminapi.Instance) bool { return !i.Serves() })
}

var (
	updateInstance = advice.New("doctor/version", "give all instances the same version of this module, and its Redis user the rights that "+advice.Docs+"redis.md lists")
	defineOne      = advice.New("doctor/agreement", "give it the same limit, key and prefixes everywhere: compare 'caddy rate-limit zones' on each instance")
)

// memberProblems are those of an instance.
var memberProblems = []problem[member]{
	{"instances", warn, func(i member) string {
		return when(i.State == adminapi.StateSilent && !i.of.mayBeUnheard(),
			"%s has not reported for %.0fs: it hangs, was killed, or does not reach the store", i.Name, i.Age)
	}, advice.New("doctor/instances/silent",
		"see that it runs and reaches the store; what it has counted is lost if it ends")},
	{"instances", unknown, func(i member) string {
		return when(i.State == adminapi.StateMute && !i.of.mayBeUnheard(),
			"cannot say what %s does: it does not report", i.Name)
	}, updateInstance},
	{"instances", unknown, func(i member) string {
		return when(slices.Contains(i.of.Unchecked, i.Name), "cannot say what is wrong with %s: what it finds has not come in time", i.Name)
	}, nil},

	{"config", fail, func(i member) string {
		return when(len(i.Differs) > 0 && i.State != adminapi.StateLeft,
			"%s has another config than this instance; these zones differ: %s", i.Name, shorten(i.Differs))
	}, defineOne},

	{"outage", warn, func(i member) string { // if no instance is well it is the store, and each instance says so
		trouble, found := i.of.Troubled[i.Name]
		return when(found && i.Serves() && len(i.of.Troubled) < len(i.of.serving()),
			"%s: %s; others are well", i.Name, trouble)
	}, advice.New("doctor/outage", "check the network from that instance to the store")},
}

// fleetProblems are those of all instances together.
var fleetProblems = []problem[*Members]{
	{"version", warn, func(m *Members) string {
		by := make(map[string][]string)
		for _, i := range m.serving() {
			by[i.Version] = append(by[i.Version], i.Name)
		}
		var parts []string
		for _, version := range slices.Sorted(maps.Keys(by)) {
			parts = append(parts, version+" on "+shorten(by[version]))
		}
		return when(len(parts) > 1, "they have several versions: %s", strings.Join(parts, "; "))
	}, updateInstance},
}
