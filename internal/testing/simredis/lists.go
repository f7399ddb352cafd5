package simredis

import "slices"

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
