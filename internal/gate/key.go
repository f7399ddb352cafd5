package gate

// key is what is known of a key while its requests run or wait, and while it has had more than its share.
type key struct {
	id               uint64
	running, waiting int32
	class            int16 // of the latest request that runs
	guest            bool  // a request of it runs as one of newcomers
	lines            *line // of its classes
	prev, next       *key  // in the list of idle keys
}

// line is the requests of a key that wait in one class. All keys that were never served wait in one line of each class.
type line struct {
	key            *key    // a line of newcomers has one of its own
	had            float64 // ns of slots
	newest, oldest *Place
	next           *line  // of the same key
	seq            uint64 // when it began to wait, to tell lines apart that have had the same
	waiting        int32
	at             int32 // in the heap, -1 if it is in none
	class          int16
}

// push adds the newest request.
func (l *line) push(p *Place) {
	p.line, p.newer, p.older = l, nil, l.newest
	if l.newest != nil {
		l.newest.newer = p
	} else {
		l.oldest = p
	}
	l.newest = p
	l.waiting++
}

// remove takes a request out.
func (l *line) remove(p *Place) {
	if p.newer != nil {
		p.newer.older = p.older
	} else {
		l.newest = p.older
	}
	if p.older != nil {
		p.older.newer = p.newer
	} else {
		l.oldest = p.newer
	}
	p.newer, p.older, p.line = nil, nil, nil
	l.waiting--
}

// key returns the key of a request: that of newcomers if it was never served and has no state.
func (q *Queue) key(p *Place) *key {
	k := q.keys[p.id]
	if k != nil {
		return k
	}
	if !q.seen.has(p.id) {
		return q.classes[p.class].newcomers.key
	}
	k = &key{id: p.id}
	q.keys[p.id] = k
	return k
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

// forget forgets up to two idle keys that have nothing to be remembered for. So there are about as many
// keys as wait and run, however many come.
func (q *Queue) forget() {
	for range 2 {
		k := q.idle.first
		if k == nil {
			return
		}
		q.idle.remove(k)
		if q.owes(k) {
			q.idle.push(k)
		} else {
			delete(q.keys, k.id)
		}
	}
}

// owes reports whether a key has had more than its share.
func (q *Queue) owes(k *key) bool {
	for l := k.lines; l != nil; l = l.next {
		if l.had > q.classes[l.class].share {
			return true
		}
	}
	return false
}

// rest makes a key idle of which nothing runs and nothing waits.
func (q *Queue) rest(k *key) {
	if k.running == 0 && k.waiting == 0 && !k.guest && k != q.classes[k.class].newcomers.key {
		q.idle.push(k)
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
