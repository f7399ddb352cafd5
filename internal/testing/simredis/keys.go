package simredis

import (
	"slices"
	"strconv"
	"strings"
)

// entry is what a key has: a string, a list or a sorted set.
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

const wrongType = failed("WRONGTYPE Operation against a key holding the wrong kind of value")

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

// millis is the time that expiries go by: while a script runs, that of its beginning.
func (s *Server) millis() int64 {
	if s.running != nil {
		return s.running.began / 1000
	}
	return s.Now() / 1000
}

// string returns the string that a key has.
func (s *Server) string(key string) (text string, found bool, err any) {
	e := s.find(key)
	switch {
	case e == nil:
		return "", false, nil
	case e.text == nil:
		return "", false, wrongType
	}
	return *e.text, true, nil
}

func (s *Server) get(args []string) any {
	text, found, err := s.string(args[0])
	if err != nil || !found {
		return err
	}
	return text
}

func (s *Server) mget(args []string) any {
	all := make([]any, len(args))
	for i, key := range args {
		if text, found, _ := s.string(key); found {
			all[i] = text
		}
	}
	return all
}

func (s *Server) set(args []string) any {
	key, value := args[0], args[1]
	e := s.find(key)
	var expires int64
	for i := 2; i < len(args); i++ {
		switch option := strings.ToUpper(args[i]); option {
		case "NX", "XX":
			if (e != nil) == (option == "NX") {
				return nil
			}
		case "EX", "PX":
			if i++; i == len(args) {
				return syntaxError
			}
			n, err := strconv.ParseInt(args[i], 10, 64)
			if err != nil {
				return notInteger
			}
			if n <= 0 {
				return failed("ERR invalid expire time in 'set' command")
			}
			if option == "EX" {
				n *= 1000
			}
			expires = s.millis() + n
		default:
			return syntaxError
		}
	}
	s.keys[key] = &entry{text: &value, expires: expires}
	return status("OK")
}

const notInteger = failed("ERR value is not an integer or out of range")

func (s *Server) setRange(args []string) any {
	at, err := strconv.Atoi(args[1])
	if err != nil {
		return notInteger
	}
	if at < 0 {
		return failed("ERR offset is out of range")
	}
	old, found, wrong := s.string(args[0])
	if wrong != nil {
		return wrong
	}
	if args[2] == "" {
		return int64(len(old))
	}
	text := []byte(old)
	if missing := at + len(args[2]) - len(text); missing > 0 {
		text = append(text, make([]byte, missing)...)
	}
	copy(text[at:], args[2])
	value := string(text)
	if found {
		s.keys[args[0]].text = &value
	} else {
		s.keys[args[0]] = &entry{text: &value}
	}
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
	life, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return notInteger
	}
	e := s.find(args[0])
	if e == nil {
		return int64(0)
	}
	if e.expires = s.millis() + life; life <= 0 {
		delete(s.keys, args[0])
	}
	return int64(1)
}
