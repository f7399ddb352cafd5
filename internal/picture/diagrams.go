package main

// request is the way of a request through the handler.
func request() diagram {
	return diagram{
		label: "A request meets its zones, each zone makes a key of it, and the store decides all of them at once. " +
			"If every zone has room, all are charged and the request goes on. If one has not, nothing is charged and the client gets 429.",
		width: 900, height: 236,
		boxes: []box{
			{"box", 10, 72, 130, 64, "request", []string{"POST /login", "203.0.113.7"}},
			{"box", 200, 30, 170, 64, "zone clients", []string{"100 in any minute", "key 203.0.113.7"}},
			{"box", 200, 114, 170, 64, "zone logins", []string{"5 per minute", "key 203.0.113.7"}},
			{"box", 440, 62, 160, 84, "store", []string{"memory or Redis:", "one call, one clock,", "all zones or none"}},
			{"yes", 690, 20, 200, 72, "allowed", []string{"every zone is charged", "RateLimit: \"logins\";r=4;t=12"}},
			{"no", 690, 120, 200, 72, "refused: 429", []string{"no zone is charged", "Retry-After: 12, exact"}},
		},
		arrows: []arrow{
			{"way", []int{140, 104, 170, 104, 170, 62, 200, 62}, "", 0, 0},
			{"way", []int{140, 104, 170, 104, 170, 146, 200, 146}, "", 0, 0},
			{"way", []int{370, 62, 405, 62, 405, 104, 440, 104}, "", 0, 0},
			{"way", []int{370, 146, 405, 146, 405, 104, 440, 104}, "", 0, 0},
			{"yes", []int{600, 92, 645, 92, 645, 56, 690, 56}, "", 0, 0},
			{"no", []int{600, 116, 645, 116, 645, 156, 690, 156}, "", 0, 0},
		},
		notes: []note{
			{10, 222, "If the store does not answer within its timeout, on_store_error decides: allow, deny, or count in this instance's memory."},
		},
	}
}

// fleet is a fleet of instances, and its three answers to a Redis that does not answer.
func fleet() diagram {
	return diagram{
		label: "Three instances share the counts in one Redis. If Redis does not answer, allow lets requests pass, deny refuses them " +
			"with 503, and local counts in the memory of each instance with a third of the limit.",
		width: 900, height: 250,
		boxes: []box{
			{"box", 10, 20, 130, 44, "Caddy 1", nil},
			{"box", 10, 88, 130, 44, "Caddy 2", nil},
			{"box", 10, 156, 130, 44, "Caddy 3", nil},
			{"box", 230, 78, 150, 64, "Redis", []string{"one exact limit", "for the fleet"}},
			{"wait", 450, 78, 150, 64, "no answer in time", []string{"timeout 50ms, then", "a breaker"}},
			{"box", 680, 10, 210, 62, "on_store_error allow", []string{"the request passes,", "without a RateLimit header"}},
			{"no", 680, 88, 210, 44, "on_store_error deny", []string{"503"}},
			{"yes", 680, 148, 210, 62, "on_store_error local", []string{"a third of the limit each,", "in the memory of each instance"}},
		},
		arrows: []arrow{
			{"way", []int{140, 42, 185, 42, 185, 110, 230, 110}, "", 0, 0},
			{"way", []int{140, 110, 230, 110}, "", 0, 0},
			{"way", []int{140, 178, 185, 178, 185, 110, 230, 110}, "", 0, 0},
			{"wait", []int{380, 110, 450, 110}, "", 0, 0},
			{"way", []int{600, 110, 640, 110, 640, 41, 680, 41}, "", 0, 0},
			{"way", []int{600, 110, 680, 110}, "", 0, 0},
			{"way", []int{600, 110, 640, 110, 640, 179, 680, 179}, "", 0, 0},
		},
		notes: []note{{10, 238, "Each zone chooses its own answer. The log has one line when this begins and one when it ends."}},
	}
}

// tree helps to choose an algorithm.
func tree() diagram {
	const left, right, w = 20, 520, 360
	question := func(y int, title string) box { return box{"box", left, y, w, 44, title, nil} }
	answer := func(y int, title, why string) box { return box{"yes", right, y, w, 44, title, []string{why}} }
	d := diagram{
		label: "Which algorithm? For requests at the same time, concurrency. For a quota per day or month, fixed_window. " +
			"To delay instead of refusing, leaky_bucket as a queue. For bursts and an even rate, token_bucket. " +
			"For large limits where a small error is welcome, sliding_window_counter. Otherwise sliding_window_log.",
		width: 900, height: 416,
	}
	rows := []struct{ question, answer, why string }{
		{"Limit what runs at the same time?", "concurrency", "slots, such as open streams or uploads"},
		{"A quota per day, week, month or year?", "fixed_window", "window day; follows the calendar and its time zone"},
		{"Delay requests rather than refuse them?", "leaky_bucket, mode queue", "evenly spaced for the whole fleet"},
		{"Allow bursts, then an even rate?", "token_bucket", "burst at once, then events per window"},
		{"Limits above 10,000 for many keys?", "sliding_window_counter", "three numbers per key, a close estimate"},
	}
	for i, row := range rows {
		y := 10 + i*66
		d.boxes = append(d.boxes, question(y, row.question), answer(y, row.answer, row.why))
		d.arrows = append(d.arrows,
			arrow{"yes", []int{left + w, y + 22, right, y + 22}, "yes", left + w + 50, y + 16},
			arrow{"way", []int{left + w/2, y + 44, left + w/2, y + 66}, "no", left + w/2 + 8, y + 59})
	}
	y := 10 + len(rows)*66
	d.boxes = append(d.boxes, box{"yes", left, y, w, 62, "sliding_window_log", []string{"the default: never more than events", "in any window, wherever it starts"}})
	return d
}

// charge is the life of a charge.
func charge() diagram {
	return diagram{
		label: "A request is charged its cost before it is handled. If its response does not count, the charge is given back. " +
			"If it says what it has cost, the difference is charged or given back. If Caddy dies meanwhile, the charge stays.",
		width: 900, height: 222,
		boxes: []box{
			{"box", 10, 74, 150, 64, "booked", []string{"cost, before the", "request is handled"}},
			{"box", 240, 74, 150, 64, "handled", []string{"the upstream", "answers"}},
			{"yes", 500, 8, 390, 46, "the response counts", []string{"the charge stays"}},
			{"wait", 500, 60, 390, 46, "charge on_response: it does not count", []string{"the charge is given back"}},
			{"wait", 500, 112, 390, 46, "the response says what it has cost", []string{"the difference is charged, or given back"}},
			{"no", 500, 164, 390, 46, "Caddy dies, or the client leaves", []string{"what was booked stays charged"}},
		},
		arrows: []arrow{
			{"way", []int{160, 106, 240, 106}, "", 0, 0},
			{"line", []int{390, 106, 445, 106}, "", 0, 0},
			{"yes", []int{445, 106, 445, 31, 500, 31}, "", 0, 0},
			{"no", []int{445, 106, 445, 187, 500, 187}, "", 0, 0},
			{"wait", []int{445, 106, 445, 83, 500, 83}, "", 0, 0},
			{"wait", []int{445, 106, 445, 135, 500, 135}, "", 0, 0},
		},
	}
}
