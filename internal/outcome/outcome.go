// Package outcome has the outcomes of a request in a zone.
package outcome

// Outcome is the outcome of a request in a zone.
type Outcome uint8

const (
	Allowed Outcome = iota
	Limited
	NotCharged   // allowed here, but refused by another zone, so not charged
	DryRun       // would have been refused
	Banned       // refused because the key is banned
	Rejected     // refused without asking the store: blocked, or without a key, plan or valid limit
	Exempt       // not limited: exempt, unlimited, or without a key
	FailedOpen   // let through because the store did not answer
	FailedClosed // refused because the store did not answer, or this process was too busy to ask
	Local        // decided by this process alone because the store did not answer
	Abandoned    // the client left while it waited
	Count        // the number of outcomes
)

// Names are the names of the outcomes in logs, metrics, the admin API and the command line.
var Names = [Count]string{
	Allowed: "allowed", Limited: "limited", NotCharged: "not_charged", DryRun: "dry_run", Banned: "banned",
	Rejected: "rejected", Exempt: "exempt",
	FailedOpen: "failed_open", FailedClosed: "failed_closed", Local: "local", Abandoned: "abandoned",
}

// NameRefused is the name of all refusals together, whatever their reason.
const NameRefused = "refused"

// NameErrors is the name of all outcomes together that come from errors of the store.
const NameErrors = "errors"

// Passes reports whether the request goes on to the next handler.
func (o Outcome) Passes() bool {
	return !o.Refused() && o != NotCharged && o != FailedClosed && o != Abandoned
}

// Refused reports whether the zone refused the request.
func (o Outcome) Refused() bool {
	return o == Limited || o == Banned || o == Rejected
}

// WouldRefuse reports whether the zone refused the request, or would have without a dry run.
func (o Outcome) WouldRefuse() bool { return o.Refused() || o == DryRun }

// Decided reports whether the limit was asked, so that the decision has numbers.
func (o Outcome) Decided() bool {
	switch o {
	case Banned, Rejected, Exempt, FailedOpen, FailedClosed, Abandoned:
		return false
	}
	return true
}

// Column returns the name of the column that counts the outcome where there is no room for each.
func (o Outcome) Column() string {
	switch {
	case o.Refused():
		return NameRefused
	case o == FailedOpen || o == FailedClosed || o == Local:
		return NameErrors
	}
	return Names[o]
}

// Named returns the outcomes of a name, which may be that of a column.
func Named(name string) (named [Count]bool, ok bool) {
	for o := range Count {
		if named[o] = name == Names[o] || name == o.Column(); named[o] {
			ok = true
		}
	}
	return named, ok
}

// Columns are the names of these columns. The first two always have something to say.
var Columns = []string{
	Names[Allowed], NameRefused, Names[DryRun], Names[Exempt], Names[NotCharged], Names[Abandoned], NameErrors,
}
