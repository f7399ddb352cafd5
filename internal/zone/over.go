package zone

// The values of over.
const (
	OverRefuses = "refuse"
	OverPasses  = "pass"
)

// overPass is the rollout of a zone that lets pass what is above its limit.
const overPass = "over pass"

// OverPass says what happens to requests above the limit if they are not refused. Blocks, bans by operators and requests
// without a key are refused all the same.
type OverPass struct {
	PassesOver bool   // they pass, and are marked
	OverHeader string // the header of the request that has the mark; empty if there is none
}
