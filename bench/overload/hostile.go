package main

// hostile is what clients do that do not play.
type hostile struct {
	connections int   // so many clients, each of which asks again once it has its answer; 0: clients come at a rate
	slow        int64 // ns between the slot and the work: a body that comes slowly, a page that waits for others
	stops       bool  // the upstream stops to work when the client leaves
	alternates  bool  // between its class and the next one
	once        bool  // it asks until it was served once
}

// connect makes the clients of a group ask, from the fourth second on. One that is refused waits for 200 ms.
func (w *world) connect(g *group, res *result, key uint64) {
	asked := 0
	var ask func()
	ask = func() {
		class := *g
		if asked++; g.alternates {
			class.class += asked % 2
		}
		w.send(&class, res, key, func(good bool) {
			switch {
			case !good && g.timeout >= 1e9:
				w.after(200*ms, ask)
			case !g.once:
				w.after(1*ms, ask)
			}
		})
	}
	for range g.connections {
		w.at(4e9+int64(w.rnd.Float64()*100*ms), ask)
	}
}

// attacks are clients that do not play, next to 20 polite keys that ask for a third of what the upstream can do.
func attacks() []*scenario {
	const ever = 1e15
	upload := group{name: "upload", keys: 1, work: memoryless(work), timeout: ever, hostile: hostile{connections: 1, slow: 26e9, once: true}}
	burst := crowd("all", 50, 0)
	burst.rate = between(31, 60, 3000, 20)
	attack := func(name string, work float64, timeout int64, h hostile) *scenario {
		polite := crowd("polite", 20, 130)
		polite.from, polite.to = 4, 60
		of := group{name: "hostile", keys: 1, work: memoryless(work), timeout: timeout, hostile: h}
		return &scenario{name: name, seconds: 60, up: pool(16), groups: []group{polite, of}, best: 24, polite: 0.95}
	}
	alternates := attack("alternates classes", work, 10e9, hostile{connections: 60, alternates: true})
	alternates.classes = 2
	alternates.groups[0].rate = constant(300)
	return []*scenario{
		attack("bodies without an end", work, ever, hostile{connections: 30, slow: ever}),
		attack("bodies of 10 s", work, ever, hostile{connections: 30, slow: 10e9}),
		attack("pages of 10 s", 10e9, ever, hostile{connections: 30}),
		attack("leaves at once, upstream works on", 300*ms, 30*ms, hostile{connections: 30}),
		attack("leaves at once, upstream stops", 300*ms, 30*ms, hostile{connections: 30, stops: true}),
		alternates,
		attack("one request of 600 s", 600e9, ever, hostile{connections: 1, once: true}),
		{name: "upload of 26 s, then overload", seconds: 60, up: pool(48), groups: []group{burst, upload}, best: 64, share: 0.8},
	}
}
