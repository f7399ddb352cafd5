package simredis

import (
	"slices"
	"strconv"
)

// listOf returns the entry of a key that is a list, or nil if there is no such key.
func (s *Server) listOf(key string) (e *entry, err any) {
	e = s.find(key)
	if e != nil && e.list == nil {
		return nil, wrongType
	}
	return e, nil
}

// tidy removes a key whose list or set is empty.
func (s *Server) tidy(key string) {
	if e := s.keys[key]; e != nil && e.text == nil && len(e.list) == 0 && len(e.set) == 0 {
		delete(s.keys, key)
	}
}

// within returns the part of a list from one index to another.
func within(list []string, from, to string) (part []string, err any) {
	a, errA := strconv.Atoi(from)
	b, errB := strconv.Atoi(to)
	if errA != nil || errB != nil {
		return nil, notInteger
	}
	n := len(list)
	if a < 0 {
		a = max(0, a+n)
	}
	if b < 0 {
		b += n
	}
	b = min(b, n-1)
	if a > b || a >= n {
		return nil, nil
	}
	return list[a : b+1], nil
}

func (s *Server) llen(args []string) any {
	e, err := s.listOf(args[0])
	if err != nil {
		return err
	}
	if e == nil {
		return int64(0)
	}
	return int64(len(e.list))
}

func (s *Server) lindex(args []string) any {
	e, err := s.listOf(args[0])
	if err != nil || e == nil {
		return err
	}
	i, bad := strconv.Atoi(args[1])
	if bad != nil {
		return notInteger
	}
	if i < 0 {
		i += len(e.list)
	}
	if i < 0 || i >= len(e.list) {
		return nil
	}
	return e.list[i]
}

func (s *Server) lrange(args []string) any {
	e, err := s.listOf(args[0])
	if err != nil {
		return err
	}
	all := []any{}
	if e == nil {
		return all
	}
	part, err := within(e.list, args[1], args[2])
	if err != nil {
		return err
	}
	for _, element := range part {
		all = append(all, element)
	}
	return all
}

func (s *Server) rpush(args []string) any {
	e, err := s.listOf(args[0])
	if err != nil {
		return err
	}
	if e == nil {
		e = new(entry)
		s.keys[args[0]] = e
	}
	e.list = append(e.list, args[1:]...)
	return int64(len(e.list))
}

func (s *Server) lset(args []string) any {
	e, err := s.listOf(args[0])
	if err != nil {
		return err
	}
	if e == nil {
		return failed("ERR no such key")
	}
	i, bad := strconv.Atoi(args[1])
	if bad != nil {
		return notInteger
	}
	if i < 0 {
		i += len(e.list)
	}
	if i < 0 || i >= len(e.list) {
		return failed("ERR index out of range")
	}
	e.list[i] = args[2]
	return status("OK")
}

func (s *Server) ltrim(args []string) any {
	e, err := s.listOf(args[0])
	if err != nil {
		return err
	}
	if e == nil {
		return status("OK")
	}
	part, err := within(e.list, args[1], args[2])
	if err != nil {
		return err
	}
	e.list = slices.Clone(part)
	s.tidy(args[0])
	return status("OK")
}

func (s *Server) lrem(args []string) any {
	e, err := s.listOf(args[0])
	if err != nil {
		return err
	}
	count, bad := strconv.Atoi(args[1])
	if bad != nil {
		return notInteger
	}
	if e == nil {
		return int64(0)
	}
	left, removed := max(count, -count), int64(0)
	if count == 0 {
		left = len(e.list)
	}
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
