package simredis

import (
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
