// Package outcome has the outcomes of a request in a zone.
package outcome

// Outcome is the outcome of a request in a zone.
type Outcome uint8

const (
	Allowed Outcome = iota
	Refused
	NotCharged   // allowed here, but refused by another zone, so not charged
	DryRun       // would have been refused
	Banned       // refused because the key is banned
	Shed         // refused because the slots that are left are reserved for other requests
	Rejected     // refused without asking the store: blocked, or without a key, plan or valid limit
	Exempt       // not limited: exempt, unlimited, or without a key
	FailedOpen   // let through because the store did not answer
	FailedClosed // refused because the store did not answer
	Local        // decided by this process alone because the store did not answer
	Abandoned    // the client left while it waited
	Count        // the number of outcomes
)

// Names are the names of the outcomes in logs, metrics and the admin API.
var Names = [Count]string{
	Allowed: "allowed", Refused: "refused", NotCharged: "not_charged", DryRun: "dry_run", Banned: "banned",
	Shed: "shed", Rejected: "rejected", Exempt: "exempt",
	FailedOpen: "failed_open", FailedClosed: "failed_closed", Local: "local", Abandoned: "abandoned",
}

// Passes reports whether the request goes on to the next handler.
func (o Outcome) Passes() bool {
	return !o.Declined() && o != NotCharged && o != FailedClosed && o != Abandoned
}

// Declined reports whether the zone refused the request.
func (o Outcome) Declined() bool {
	return o == Refused || o == Banned || o == Shed || o == Rejected
}

// Decided reports whether the limit was asked, so that the decision has numbers.
func (o Outcome) Decided() bool {
	switch o {
	case Banned, Rejected, Exempt, FailedOpen, FailedClosed, Abandoned:
		return false
	}
	return true
}
