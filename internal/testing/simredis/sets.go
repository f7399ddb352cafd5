package simredis

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// scored is a member of a sorted set.
type scored struct {
	name  string
	score float64
}

func (e *entry) place(name string) int {
	return slices.IndexFunc(e.set, func(m scored) bool { return m.name == name })
}

// score is an argument that must be one.
func score(text string) float64 {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return f
}

// between returns the members whose scores are in a range. An end of it that begins with "(" does not belong to it.
func (e *entry) between(from, to string) (in []scored) {
	from, above := strings.CutPrefix(from, "(")
	to, below := strings.CutPrefix(to, "(")
	low, high := score(from), score(to)
	for _, m := range e.set {
		if (m.score > low || m.score == low && !above) && (m.score < high || m.score == high && !below) {
			in = append(in, m)
		}
	}
	return in
}

// precise is a score as Redis writes it.
func precise(score float64) string { return strconv.FormatFloat(score, 'g', 17, 64) }

func (s *Server) zadd(args []string) any {
	e, added := s.made(args[0]), int64(0)
	for i := 1; i < len(args); i += 2 {
		if at := e.place(args[i+1]); at >= 0 {
			e.set = slices.Delete(e.set, at, at+1)
		} else {
			added++
		}
		e.set = append(e.set, scored{args[i+1], score(args[i])})
	}
	slices.SortFunc(e.set, func(a, b scored) int { return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.name, b.name)) })
	return added
}

func (s *Server) zcard(args []string) any { return int64(len(s.entry(args[0]).set)) }

func (s *Server) zcount(args []string) any {
	return int64(len(s.entry(args[0]).between(args[1], args[2])))
}

func (s *Server) zscore(args []string) any {
	e := s.entry(args[0])
	if at := e.place(args[1]); at >= 0 {
		return precise(e.set[at].score)
	}
	return nil
}

func (s *Server) zrem(args []string) any {
	return s.without(args[0], func(m scored) bool { return slices.Contains(args[1:], m.name) })
}

func (s *Server) zremRangeByScore(args []string) any {
	in := s.entry(args[0]).between(args[1], args[2])
	return s.without(args[0], func(m scored) bool { return slices.Contains(in, m) })
}

// without takes members out of the set of a key, and returns how many they were.
func (s *Server) without(key string, out func(scored) bool) any {
	e := s.entry(key)
	were := len(e.set)
	e.set = slices.DeleteFunc(e.set, out)
	s.tidy(key)
	return int64(were - len(e.set))
}

// zrangeByScore is ZRANGEBYSCORE, or ZREVRANGEBYSCORE, whose range begins with the greater end.
func (s *Server) zrangeByScore(args []string, back bool) any {
	from, to := args[1], args[2]
	if back {
		from, to = to, from
	}
	in := s.entry(args[0]).between(from, to)
	if back {
		slices.Reverse(in)
	}
	scores := false
	for i := 3; i < len(args); i++ {
		if scores = scores || args[i] == "WITHSCORES"; args[i] == "LIMIT" {
			in = in[min(int(number(args[i+1])), len(in)):]
			in = in[:min(int(number(args[i+2])), len(in))]
			i += 2
		}
	}
	all := []any{}
	for _, m := range in {
		if all = append(all, m.name); scores {
			all = append(all, precise(m.score))
		}
	}
	return all
}
