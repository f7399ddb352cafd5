package gate

// key is what is known of a key while its requests run or wait, and while it has had more than its share.
type key struct {
	id               uint64
	running, waiting int32
	class            int16 // of the latest request that runs
	guest            bool  // a request of it runs as one of newcomers
	lines            *line // of its classes
	place            int   // among all keys
}

// line is the requests of a key that wait in one class. All keys that were never served wait in one line of each class.
type line struct {
	key      *key     // a line of newcomers has one of its own
	had      float64  // ns of slots
	requests []*Place // the oldest first
	next     *line    // of the same key
	seq      uint64   // when it began to wait, to tell lines apart that have had the same
	at       int32    // in the heap, -1 if it is in none
	class    int16
}

// seen remembers which keys were served lately: in each of its places the last one, by a part of its hash. Its memory is
// 256 kB, however many keys there are. A key that looks like one that was served is a key of its own a little early. One
// whose place another key has taken is a newcomer again, until it is served.
type seen struct{ places *[1 << 17]uint16 }

func (s *seen) has(id uint64) bool {
	return s.places != nil && s.places[id%uint64(len(s.places))] == uint16(id>>48)
}

func (s *seen) add(id uint64) {
	if s.places == nil {
		s.places = new([1 << 17]uint16)
	}
	s.places[id%uint64(len(s.places))] = uint16(id >> 48)
}

// key returns the key of a request: that of newcomers if it was never served and has no state.
func (q *Queue) key(p *Place) *key {
	k := q.keys[p.id]
	switch {
	case k != nil:
		return k
	case !q.seen.has(p.id):
		return q.classes[p.class].newcomers.key
	}
	k = &key{id: p.id}
	q.remember(k)
	return k
}

func (q *Queue) remember(k *key) {
	k.place = len(q.all)
	q.all = append(q.all, k)
	q.keys[k.id] = k
}

// line returns the line of a key in a class. What the key has had beyond its share in another class stays with it.
func (q *Queue) line(k *key, class int16) *line {
	debt := 0.0
	for l := k.lines; l != nil; l = l.next {
		if l.class == class {
			return l
		}
		debt = max(debt, l.had-q.classes[l.class].share)
	}
	k.lines = &line{key: k, class: class, at: -1, had: q.classes[class].share + debt, next: k.lines}
	return k.lines
}

// rest forgets a key if there is nothing to remember of it.
func (q *Queue) rest(k *key) {
	if k == q.classes[k.class].newcomers.key || q.needs(k) {
		return
	}
	last := len(q.all) - 1
	q.all[k.place], q.all[last].place = q.all[last], k.place
	q.all[last], q.all = nil, q.all[:last]
	delete(q.keys, k.id)
}

// forget looks at the next two keys, because others have had more since. So there are about as many keys as wait and run,
// however many come.
func (q *Queue) forget() {
	for range min(2, len(q.all)) {
		q.hand = (q.hand + 1) % len(q.all)
		q.rest(q.all[q.hand])
	}
}

// needs reports whether a key has requests, or has had more than its share.
func (q *Queue) needs(k *key) bool {
	for l := k.lines; l != nil; l = l.next {
		if l.had > q.classes[l.class].share {
			return true
		}
	}
	return k.running > 0 || k.waiting > 0 || k.guest
}
