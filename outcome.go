package caddyratelimit

import "github.com/seed-161337e5/caddyratelimit/algorithms"

// outcome is what became of a request in a zone.
type outcome uint8

const (
	wasAllowed outcome = iota
	wasRefused
	wasNotCharged   // the zone did not refuse, but another one
	wasDryRun       // would have been refused
	wasBanned       // refused without asking, for earlier refusals
	wasShed         // refused, for the slots that are left are for requests that matter
	wasRejected     // refused without asking: blocked, or without key, plan or valid limit
	wasExempt       // let alone: exempt, unlimited, or without a key
	wasFailedOpen   // let through, for the store did not answer
	wasFailedClosed // refused, for the store did not answer
	wasLocal        // decided by this process alone, for the store did not answer
	wasAbandoned    // the client left while it waited
	outcomes
)

// outcomeNames are what logs and metrics say.
var outcomeNames = [outcomes]string{
	wasAllowed: "allowed", wasRefused: "refused", wasNotCharged: "not_charged", wasDryRun: "dry_run", wasBanned: "banned",
	wasShed: "shed", wasRejected: "rejected", wasExempt: "exempt",
	wasFailedOpen: "failed_open", wasFailedClosed: "failed_closed", wasLocal: "local", wasAbandoned: "abandoned",
}

// passes tells whether the request goes on.
func (o outcome) passes() bool {
	return !o.declined() && o != wasNotCharged && o != wasFailedClosed && o != wasAbandoned
}

// declined tells whether the zone refused it.
func (o outcome) declined() bool {
	return o == wasRefused || o == wasBanned || o == wasShed || o == wasRejected
}

// refuses is what becomes of a request that the zone's limit refuses. The refusal with
// which a ban begins is the limit's.
func (z *Zone) refuses(d *algorithms.Decision) outcome {
	switch {
	case d.Banned && !d.BanBegins:
		return wasBanned
	case z.Reserve != nil:
		return wasShed
	}
	return wasRefused
}

// decided tells whether the zone has decided, so that there are numbers to tell.
func (o outcome) decided() bool {
	switch o {
	case wasBanned, wasRejected, wasExempt, wasFailedOpen, wasFailedClosed, wasAbandoned:
		return false
	}
	return true
}
