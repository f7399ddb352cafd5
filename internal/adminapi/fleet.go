package adminapi

// FleetAnswer is the answer of a route with the parameter fleet: that of all instances which share a store with this one.
type FleetAnswer struct {
	// Instances are this one, and then the others by name.
	Instances []Instance `json:"instances"`

	// Sum is what all instances have counted, in the form of the route without the parameter, and Counted how many these are.
	Sum     any `json:"sum,omitempty"`
	Counted int `json:"counted,omitempty"`

	// Notes say what is missing in the view.
	Notes []string `json:"notes,omitempty"`
}

// The states of instances.
const (
	StateHere    = "here"    // the one that answers
	StateReports = "reports" // it has reported within the last seconds
	StateSilent  = "silent"  // it no longer reports: it hangs, was killed, or does not reach the store
	StateLeft    = "left"    // it has ended, or has a config without this store
	StateMute    = "mute"    // it has not reported: it has just started, has an older version, or may not
)

// Instance is an instance of a fleet, and its answer.
type Instance struct {
	Name  string `json:"name"`
	ID    string `json:"id"` // another after each start
	State string `json:"state"`

	// Age is how many seconds ago it has reported. Its counts are of that time.
	Age float64 `json:"age"`

	Version string `json:"version,omitempty"` // of the module

	// Differs are the zones that this one defines in another way than the instance that answers, or that only one of them has.
	Differs []string `json:"differs,omitempty"`

	// Requests counts those in all zones of shared stores, and Rate is how many have come in a second in the last minute.
	Requests uint64  `json:"requests"`
	Rate     float64 `json:"rate"`

	// Trouble says that its requests get no answer from a store.
	Trouble string `json:"trouble,omitempty"`
}

// Serves reports whether an instance takes requests, as far as is known.
func (i *Instance) Serves() bool { return i.State == StateHere || i.State == StateReports }
