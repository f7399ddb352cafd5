// Package outcome names what can become of a request in a zone.
package outcome

// Outcome is what became of a request in a zone.
type Outcome uint8

const (
	Allowed Outcome = iota
	Refused
	NotCharged   // the zone did not refuse, but another one
	DryRun       // would have been refused
	Banned       // refused without asking, for earlier refusals
	Shed         // refused, for the slots that are left are for requests that matter
	Rejected     // refused without asking: blocked, or without key, plan or valid limit
	Exempt       // let alone: exempt, unlimited, or without a key
	FailedOpen   // let through, for the store did not answer
	FailedClosed // refused, for the store did not answer
	Local        // decided by this process alone, for the store did not answer
	Abandoned    // the client left while it waited
	Count
)

// Names are what logs and metrics say.
var Names = [Count]string{
	Allowed: "allowed", Refused: "refused", NotCharged: "not_charged", DryRun: "dry_run", Banned: "banned",
	Shed: "shed", Rejected: "rejected", Exempt: "exempt",
	FailedOpen: "failed_open", FailedClosed: "failed_closed", Local: "local", Abandoned: "abandoned",
}

// Passes tells whether the request goes on.
func (o Outcome) Passes() bool {
	return !o.Declined() && o != NotCharged && o != FailedClosed && o != Abandoned
}

// Declined tells whether the zone refused it.
func (o Outcome) Declined() bool {
	return o == Refused || o == Banned || o == Shed || o == Rejected
}

// Decided tells whether the zone has decided, so that there are numbers to tell.
func (o Outcome) Decided() bool {
	switch o {
	case Banned, Rejected, Exempt, FailedOpen, FailedClosed, Abandoned:
		return false
	}
	return true
}
