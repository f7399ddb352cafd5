package simredis

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// scored is a member of a sorted set.
type scored struct {
	name  string
	score float64
}

func (s *Server) setOf(key string) (e *entry, err any) {
	e = s.find(key)
	if e != nil && e.set == nil {
		return nil, wrongType
	}
	return e, nil
}

func (e *entry) place(name string) int {
	return slices.IndexFunc(e.set, func(m scored) bool { return m.name == name })
}

// bound is an end of a range of scores.
type bound struct {
	score float64
	open  bool
}

func parseBound(text string) (b bound, ok bool) {
	text, b.open = strings.CutPrefix(text, "(")
	var err error
	b.score, err = strconv.ParseFloat(text, 64)
	return b, err == nil && !math.IsNaN(b.score)
}

// between returns the members whose scores are in a range.
func (e *entry) between(from, to string) (in []scored, err any) {
	low, ok := parseBound(from)
	high, fine := parseBound(to)
	if !ok || !fine {
		return nil, failed("ERR min or max is not a float")
	}
	if e == nil {
		return nil, nil
	}
	for _, m := range e.set {
		if (m.score > low.score || m.score == low.score && !low.open) && (m.score < high.score || m.score == high.score && !high.open) {
			in = append(in, m)
		}
	}
	return in, nil
}

// precise is a score as Redis writes it.
func precise(score float64) string { return strconv.FormatFloat(score, 'g', 17, 64) }

func (s *Server) zadd(args []string) any {
	if len(args)%2 == 0 {
		return syntaxError
	}
	e, err := s.setOf(args[0])
	if err != nil {
		return err
	}
	scores := make([]float64, 0, len(args)/2)
	for i := 1; i < len(args); i += 2 {
		score, bad := strconv.ParseFloat(args[i], 64)
		if bad != nil {
			return failed("ERR value is not a valid float")
		}
		scores = append(scores, score)
	}
	if e == nil {
		e = new(entry)
		s.keys[args[0]] = e
	}
	added := int64(0)
	for i, score := range scores {
		name := args[2+2*i]
		if at := e.place(name); at >= 0 {
			e.set = slices.Delete(e.set, at, at+1)
		} else {
			added++
		}
		e.set = append(e.set, scored{name, score})
	}
	slices.SortFunc(e.set, func(a, b scored) int { return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.name, b.name)) })
	return added
}

func (s *Server) zcard(args []string) any {
	e, err := s.setOf(args[0])
	if err != nil {
		return err
	}
	if e == nil {
		return int64(0)
	}
	return int64(len(e.set))
}

func (s *Server) zcount(args []string) any {
	e, err := s.setOf(args[0])
	if err != nil {
		return err
	}
	in, err := e.between(args[1], args[2])
	if err != nil {
		return err
	}
	return int64(len(in))
}

func (s *Server) zscore(args []string) any {
	e, err := s.setOf(args[0])
	if err != nil || e == nil {
		return err
	}
	if at := e.place(args[1]); at >= 0 {
		return precise(e.set[at].score)
	}
	return nil
}

func (s *Server) zrem(args []string) any {
	e, err := s.setOf(args[0])
	if err != nil {
		return err
	}
	removed := int64(0)
	for _, name := range args[1:] {
		if e == nil {
			break
		}
		if at := e.place(name); at >= 0 {
			e.set = slices.Delete(e.set, at, at+1)
			removed++
		}
	}
	s.tidy(args[0])
	return removed
}

func (s *Server) zremRangeByScore(args []string) any {
	e, wrong := s.setOf(args[0])
	in, err := e.between(args[1], args[2])
	switch {
	case err != nil:
		return err
	case wrong != nil:
		return wrong
	case e == nil:
		return int64(0)
	}
	e.set = slices.DeleteFunc(e.set, func(m scored) bool { return slices.Contains(in, m) })
	s.tidy(args[0])
	return int64(len(in))
}

// zrangeByScore is ZRANGEBYSCORE, or ZREVRANGEBYSCORE, whose range begins with the greater end.
func (s *Server) zrangeByScore(args []string, back bool) any {
	from, to := args[1], args[2]
	if back {
		from, to = to, from
	}
	scores, skip, most := false, 0, -1
	for i := 3; i < len(args); i++ {
		switch option := strings.ToUpper(args[i]); {
		case option == "WITHSCORES":
			scores = true
		case option == "LIMIT" && i+2 < len(args):
			var a, b error
			skip, a = strconv.Atoi(args[i+1])
			most, b = strconv.Atoi(args[i+2])
			if a != nil || b != nil {
				return notInteger
			}
			i += 2
		default:
			return syntaxError
		}
	}
	e, wrong := s.setOf(args[0])
	in, err := e.between(from, to)
	if err != nil {
		return err
	}
	if wrong != nil {
		return wrong
	}
	if back {
		slices.Reverse(in)
	}
	if skip < 0 {
		in = nil
	}
	in = in[min(max(skip, 0), len(in)):]
	if most >= 0 {
		in = in[:min(most, len(in))]
	}
	all := []any{}
	for _, m := range in {
		if all = append(all, m.name); scores {
			all = append(all, precise(m.score))
		}
	}
	return all
}
