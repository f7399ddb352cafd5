package algorithms

// A clock that goes back leaves states whose time is ahead of it. Time does not go back for a key, so
// a state that is little ahead holds until the clock has caught up. If it is further ahead than its own
// window, this would refuse a client for longer than any window. Then the state is moved back, with
// its counts, and as far as needed that its time is not ahead any more: by a whole number of periods.
//
// A period is twice as long as a state counts. So at any time such a state is as old as a state may be
// that counts, or as one that no longer does, and without anything being written, a refused client
// waits no longer than it would have done for the same charges without the step. The next charge
// writes the state with a time of the new clock.

// backToNow returns by how much to move a time back that is ahead of now, if states count so long.
func backToNow(ahead, counts int64) int64 {
	period := 2 * counts
	return (ahead + period - 1) / period * period
}
