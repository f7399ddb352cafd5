package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/advice"
)

// Members are the instances of a fleet, compared.
type Members struct {
	All []adminapi.Instance // the one that compares first

	// Configured is the option instances; 0 without one.
	Configured int

	// Troubled are the instances, by name, whose store fails them, and how.
	Troubled map[string]string
}

var memberChecks = []check[Members]{
	{"instances", present},
	{"config", sameConfig},
	{"version", sameVersion},
	{"clock", sameClock},
	{"outage", outages},
	{"load", evenLoad},
}

// Compare makes the checks that need all instances.
func Compare(m *Members) []adminapi.Finding {
	return run(nil, memberChecks, m, func(*adminapi.Finding) {})
}

// unheard returns how many instances have not reported because of the store.
func (m *Members) unheard() (n int) {
	for _, i := range m.All {
		if i.State == adminapi.StateUnknown {
			n++
		}
	}
	return n
}

// serving returns the instances that take requests, as far as is known.
func (m *Members) serving() (all []adminapi.Instance) {
	for _, i := range m.All {
		if i.State == adminapi.StateHere || i.State == adminapi.StateReports {
			all = append(all, i)
		}
	}
	return all
}

// present names the instances that do not report.
func present(m *Members) (all []result) {
	switch n := m.unheard(); {
	case n > 0:
		return cannotSay(fmt.Sprintf("what %d of %d instances do, because their store does not answer in time", n, len(m.All)), advice.Text{})
	case m.Troubled[m.All[0].Name] != "":
		return nil // another one may just not be heard
	}
	alive := 0
	for _, i := range m.All {
		switch i.State {
		case adminapi.StateSilent:
			all = append(all, warn(seeInstance.With(), "%s has not reported for %.0fs: it hangs, was killed, or does not reach the store", i.Name, i.Age)...)
		case adminapi.StateMute:
			alive++
			all = append(all, cannotSay(fmt.Sprintf("%s does not report", i.Name), updateInstance.With())...)
		case adminapi.StateLeft:
			all = append(all, ok("%s has left within the last minute", i.Name)...)
		default:
			alive++
		}
	}
	if m.Configured > 0 && m.Configured < alive {
		all = append(all, warn(countInstances.With(alive), "instances is %d, and %d are there: while the store does not answer, together they admit %d/%d of each limit", m.Configured, alive, alive, m.Configured)...)
	}
	if m.Configured > alive {
		return append(all, ok("%d instances share the store, and instances is %d: an instance admits 1/%d of a limit while the store does not answer", alive, m.Configured, m.Configured)...)
	}
	return append(all, ok("%d instances share the store", alive)...)
}

// sameConfig names the instances that define zones otherwise.
func sameConfig(m *Members) (all []result) {
	for _, i := range m.All {
		if len(i.Differs) > 0 && i.State != adminapi.StateLeft && i.State != adminapi.StateUnknown {
			all = append(all, fail(defineOne.With(), "%s has another config than this instance; these zones differ: %s", i.Name, shorten(i.Differs))...)
		}
	}
	if all == nil && len(m.serving()) > 1 {
		return ok("all instances that report define their zones alike")
	}
	return all
}

func sameVersion(m *Members) []result {
	by := make(map[string][]string)
	for _, i := range m.serving() {
		by[i.Version] = append(by[i.Version], i.Name)
	}
	switch {
	case len(m.serving()) < 2:
		return nil
	case len(by) < 2:
		return ok("all instances that report have the same version of this module")
	}
	var parts []string
	for version, names := range by {
		parts = append(parts, version+" on "+shorten(names))
	}
	slices.Sort(parts)
	return warn(updateInstance.With(), "they have several versions: %s", strings.Join(parts, "; "))
}

// mostApart is how many seconds clocks may differ. A report may take a while to the store on a busy machine.
const mostApart = 2

func sameClock(m *Members) (all []result) {
	for _, i := range m.serving() {
		if apart := max(i.ClockAhead, -i.ClockAhead); apart > mostApart {
			way := "ahead of"
			if i.ClockAhead < 0 {
				way = "behind"
			}
			all = append(all, warn(setClocks.With(), "the clock of %s is %.1fs %s that of the store", i.Name, apart, way)...)
		}
	}
	if all == nil && len(m.serving()) > 1 {
		return ok("the clocks of all instances that report agree with that of the store")
	}
	return all
}

// outages names the instances whose store fails them, while others are well.
func outages(m *Members) (all []result) {
	for _, i := range m.serving() {
		if trouble, found := m.Troubled[i.Name]; found {
			all = append(all, warn(seeNetwork.With(), "%s: %s; others are well", i.Name, trouble)...)
		}
	}
	if len(m.Troubled) >= len(m.serving()) || m.unheard() > 0 { // then it is the store, and each instance says so
		return nil
	}
	return all
}

// evenLoad compares the shares of requests. In an outage with on_store_error local, each instance has an equal part of
// the limit.
func evenLoad(m *Members) []result {
	all := m.serving()
	if len(all) < 2 || m.unheard()+len(m.Troubled) > 0 { // counts of others may be old
		return nil
	}
	busiest := slices.MaxFunc(all, func(a, b adminapi.Instance) int { return int(1e6*a.Share) - int(1e6*b.Share) })
	total := uint64(0)
	for _, i := range all {
		total += i.Requests
	}
	share, even := 100*busiest.Share, 100/float64(len(all))
	if share > 2*even && total >= enough {
		return warn(balance.With(), "%s has %.0f %% of the requests, and an even share is %.0f %%: in an outage with on_store_error local, it refuses more than the others", busiest.Name, share, even)
	}
	return ok("the busiest instance has %.0f %% of the requests, and an even share is %.0f %%", share, even)
}
