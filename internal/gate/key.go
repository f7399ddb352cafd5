package gate

// key is the state of a key of which requests wait or have waited lately.
type key struct {
	id             uint64
	had            float64 // ns of slots that it has had
	took           float64 // mean ns of its requests
	newest, oldest *Place  // of those that wait
	waiting        int32
	running        int32 // only those that have waited
	at             int32 // in the heap, -1 if it is in none
	class          int16
	newcomers      bool   // it is all keys that were never served
	seq            uint64 // when it began to wait, to tell keys apart that have had the same
	prev, next     *key   // in the list of idle keys
}

// push adds the newest request.
func (k *key) push(p *Place) {
	p.key, p.newer, p.older = k, nil, k.newest
	if k.newest != nil {
		k.newest.newer = p
	} else {
		k.oldest = p
	}
	k.newest = p
	k.waiting++
}

// remove takes a request out.
func (k *key) remove(p *Place) {
	if p.newer != nil {
		p.newer.older = p.older
	} else {
		k.newest = p.older
	}
	if p.older != nil {
		p.older.newer = p.newer
	} else {
		k.oldest = p.newer
	}
	p.newer, p.older = nil, nil
	k.waiting--
}

// key returns the state of the key of a request that has to wait.
func (q *Queue) key(p *Place) *key {
	if k := q.keys[p.id]; k != nil && k.class == p.class {
		return k
	}
	if !q.seen.has(p.id) {
		return q.classes[p.class].newcomers
	}
	q.forget()
	k := &key{id: p.id, class: p.class, at: -1, took: q.limit.Latency()}
	q.keys[p.id] = k
	return k
}

// forget forgets up to two idle keys that have nothing to be remembered for. So there are about as many
// keys as wait, however many come.
func (q *Queue) forget() {
	for range 2 {
		k := q.idle.first
		if k == nil {
			return
		}
		q.idle.remove(k)
		switch {
		case k.running > 0 || k.had > q.classes[k.class].share:
			q.idle.push(k)
		case q.keys[k.id] == k: // it may have come back in another class
			delete(q.keys, k.id)
		}
	}
}

// keyList is a list of keys. A key is in one list at most.
type keyList struct{ first, last *key }

func (l *keyList) push(k *key) {
	k.prev, k.next = l.last, nil
	if l.last != nil {
		l.last.next = k
	} else {
		l.first = k
	}
	l.last = k
}

// remove takes a key out, if it is in the list.
func (l *keyList) remove(k *key) {
	if l.first != k && k.prev == nil {
		return
	}
	if k.prev != nil {
		k.prev.next = k.next
	} else {
		l.first = k.next
	}
	if k.next != nil {
		k.next.prev = k.prev
	} else {
		l.last = k.prev
	}
	k.prev, k.next = nil, nil
}
