package engine

// peak is the most that a key uses of any window, exactly: each window ends with a request, and begins
// after the requests that are a window older.
type peak struct {
	most, used int64
	head       int // of the uses that are in the window
	uses       []usage
}

// usage is what a key has used at a time.
type usage struct{ at, cost int64 }

const (
	// exactUses is how many uses of a window are kept apart. Keys that come more often have those put
	// together that are closer than a part of the window.
	exactUses = 256
	parts     = 4096
)

// add adds what a request costs. The window is in microseconds.
func (p *peak) add(now, window, cost int64) {
	for p.head < len(p.uses) && p.uses[p.head].at <= now-window {
		p.used -= p.uses[p.head].cost
		p.head++
	}
	if cost <= 0 {
		return
	}
	n := len(p.uses)
	if n-p.head > exactUses && now-p.uses[n-1].at < window/parts {
		p.uses[n-1].cost += cost
	} else {
		if p.head > 0 && n == cap(p.uses) { // there is room at the front
			n = copy(p.uses, p.uses[p.head:])
			p.uses, p.head = p.uses[:n], 0
		}
		p.uses = append(p.uses, usage{now, cost})
	}
	p.used += cost
	p.most = max(p.most, p.used)
}

// acquire adds slots that a request has until [peak.release].
func (p *peak) acquire(slots int64) {
	p.used += slots
	p.most = max(p.most, p.used)
}

func (p *peak) release(slots int64) { p.used -= slots }
