package simredis

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// entry is what a key has: a string, a list or a sorted set. Scripts ask for the right one, with arguments that fit.
type entry struct {
	text *string
	list []string
	set  []scored // by score, and by name

	expires int64 // in milliseconds since 1970; 0: never
}

func (e *entry) clone() *entry {
	c := *e
	c.list, c.set = slices.Clone(e.list), slices.Clone(e.set)
	return &c
}

// find returns what a key has, or nil.
func (s *Server) find(key string) *entry {
	e := s.keys[key]
	if e != nil && e.expires != 0 && s.millis() > e.expires {
		delete(s.keys, key)
		if s.Expired != nil {
			s.Expired(key)
		}
		return nil
	}
	return e
}

// entry returns what a key has. If there is none, changes of it are lost.
func (s *Server) entry(key string) *entry {
	if e := s.find(key); e != nil {
		return e
	}
	return new(entry)
}

// made returns what a key has, which is there from now on.
func (s *Server) made(key string) *entry {
	e := s.entry(key)
	s.keys[key] = e
	return e
}

// tidy removes a key whose list or set is empty.
func (s *Server) tidy(key string) {
	if e := s.keys[key]; e != nil && e.text == nil && len(e.list) == 0 && len(e.set) == 0 {
		delete(s.keys, key)
	}
}

// millis is the time that expiries go by: while a script runs, that of its beginning.
func (s *Server) millis() int64 {
	if s.running != nil {
		return s.running.began / 1000
	}
	return s.Now() / 1000
}

// number is an argument that must be one.
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func (s *Server) get(args []string) any {
	if e := s.entry(args[0]); e.text != nil {
		return *e.text
	}
	return nil
}

func (s *Server) mget(args []string) any {
	all := make([]any, len(args))
	for i := range args {
		all[i] = s.get(args[i:])
	}
	return all
}

func (s *Server) set(args []string) any {
	e := &entry{text: &args[1]}
	if len(args) > 2 {
		life := number(args[3])
		if life <= 0 {
			return failed("ERR invalid expire time in 'set' command")
		}
		if strings.EqualFold(args[2], "EX") {
			life *= 1000
		}
		e.expires = s.millis() + life
	}
	s.keys[args[0]] = e
	return status("OK")
}

func (s *Server) setRange(args []string) any {
	old, _ := s.get(args).(string)
	if args[2] == "" {
		return int64(len(old))
	}
	text, at := []byte(old), int(number(args[1]))
	if missing := at + len(args[2]) - len(text); missing > 0 {
		text = append(text, make([]byte, missing)...)
	}
	copy(text[at:], args[2])
	value := string(text)
	s.made(args[0]).text = &value
	return int64(len(value))
}

func (s *Server) del(args []string) any {
	n := int64(0)
	for _, key := range args {
		if s.find(key) != nil {
			delete(s.keys, key)
			n++
		}
	}
	return n
}

func (s *Server) pexpire(args []string) any {
	life, e := number(args[1]), s.find(args[0])
	if e == nil {
		return int64(0)
	}
	if e.expires = s.millis() + life; life <= 0 {
		delete(s.keys, args[0])
	}
	return int64(1)
}

// index is a place in a list of some length, which is counted from its end if it is negative.
func index(text string, length int) int {
	i := int(number(text))
	if i < 0 {
		i += length
	}
	return i
}

// within returns the part of a list from one index to another.
func within(list []string, from, to string) []string {
	a, b := max(0, index(from, len(list))), min(index(to, len(list)), len(list)-1)
	if a > b {
		return nil
	}
	return list[a : b+1]
}

func (s *Server) llen(args []string) any { return int64(len(s.entry(args[0]).list)) }

func (s *Server) lindex(args []string) any {
	list := s.entry(args[0]).list
	if i := index(args[1], len(list)); i >= 0 && i < len(list) {
		return list[i]
	}
	return nil
}

func (s *Server) lrange(args []string) any {
	all := []any{}
	for _, element := range within(s.entry(args[0]).list, args[1], args[2]) {
		all = append(all, element)
	}
	return all
}

func (s *Server) rpush(args []string) any {
	e := s.made(args[0])
	e.list = append(e.list, args[1:]...)
	return int64(len(e.list))
}

func (s *Server) lset(args []string) any {
	list := s.entry(args[0]).list
	list[index(args[1], len(list))] = args[2]
	return status("OK")
}

func (s *Server) ltrim(args []string) any {
	e := s.entry(args[0])
	e.list = slices.Clone(within(e.list, args[1], args[2]))
	s.tidy(args[0])
	return status("OK")
}

// It removes so many elements from the beginning, or from the end if the number is negative.
func (s *Server) lrem(args []string) any {
	e, count := s.entry(args[0]), number(args[1])
	left, removed := max(count, -count), int64(0)
	remove := func(text string) bool {
		if text != args[2] || left == 0 {
			return false
		}
		left--
		removed++
		return true
	}
	if count < 0 {
		slices.Reverse(e.list)
	}
	e.list = slices.DeleteFunc(e.list, remove)
	if count < 0 {
		slices.Reverse(e.list)
	}
	s.tidy(args[0])
	return removed
}

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
