package gate

// pace counts answers and refusals of the last 5 to 10 s.
type pace struct {
	now, before struct{ answers, refusals int }
	turned      int64
}

const paceTurns = 5e9 // ns

func (p *pace) answered(now int64) {
	p.turn(now)
	p.now.answers++
}

func (p *pace) refused(now int64) {
	p.turn(now)
	p.now.refusals++
}

// ratio returns refusals for each answer.
func (p *pace) ratio(now int64) float64 {
	p.turn(now)
	return float64(p.now.refusals+p.before.refusals) / float64(max(p.now.answers+p.before.answers, 1))
}

func (p *pace) turn(now int64) {
	if past := now - p.turned; past > paceTurns {
		p.before, p.now = p.now, p.before
		p.now.answers, p.now.refusals = 0, 0
		if past > 2*paceTurns {
			p.before = p.now
		}
		p.turned = now
	}
}
