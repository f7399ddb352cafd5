// Package simredis is a Redis in this process, for tests. It runs the real scripts, on a clock that a test sets,
// and it can be full, read-only, busy, or without rights.
//
// The scripts run in gopher-lua, an interpreter of Lua 5.1 in Go, on a few commands of our own. `miniredis` embeds the
// same interpreter, but knows neither struct nor cmsgpack.unpack_limit, has no memory that is full, and lets no error
// leave a script as Redis does: the kinds of errors, and what a script had done by then, are what this is for. The
// commands are those that the scripts use, and few enough to be like those of Redis 7 byte for byte. Tests run the
// same histories on a real server and compare the replies.
//
// What differs: Lua in Redis computes a % b as a - floor(a / b) * b, which is inexact beyond 2^53, and joins numbers
// to texts with 14 digits. The scripts do neither, which the tests of the algorithms show on real servers.
package simredis

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Server is one Redis. It is not safe for concurrent use: like Redis, it does one thing after the other.
type Server struct {
	// Now is the time on its clock, in microseconds since 1970.
	Now func() int64

	// Forbidden are the commands, in capitals, that the user may not run.
	Forbidden map[string]bool

	// Full says that there is no memory, Readonly that it is a replica, and Alone that it has too few replicas.
	Full, Readonly, Alone bool

	// Refuses is what each command is answered that needs data, without the dash: "LOADING ...". Empty: nothing.
	Refuses string

	// View is what it knows of its Cluster; nil: it belongs to none.
	View  *View
	asked bool // the command that it carries out came after ASKING

	// Expired, if not nil, gets each key that has expired.
	Expired func(key string)

	// Touched, if not nil, gets each key that a script touches again after it took out of it all that was in it.
	Touched func(key string)

	keys    map[string]*entry
	scripts map[string]string // the texts, by digest
	running *run              // the script that runs
}

// New returns an empty server.
func New(now func() int64) *Server {
	return &Server{Now: now, keys: make(map[string]*entry), scripts: make(map[string]string)}
}

// Restart empties the server, as one that keeps nothing on its disk.
func (s *Server) Restart() {
	clear(s.keys)
	clear(s.scripts)
}

// Copy makes the server have what another one has: a replica that has received all of it.
func (s *Server) Copy(from *Server) {
	clear(s.keys)
	for name, e := range from.keys {
		s.keys[name] = e.clone()
	}
}

// What a command may be answered beside a string, an int64, a []any, and nil for nothing.
type (
	status string
	failed string // an error, without the dash
)

// Call carries out a command, and returns the reply as a client has it. [Session.Do] returns it as it goes over the wire.
func (s *Server) Call(args ...string) (any, error) {
	reply := s.reply(args)
	if err, is := reply.(failed); is {
		return nil, errors.New(string(err))
	}
	return reply, nil
}

func (s *Server) reply(args []string) any {
	name := strings.ToUpper(args[0])
	c, known := commands[name]
	if !known {
		return failed("ERR unknown command '" + args[0] + "'")
	}
	if s.Forbidden[name] {
		return failed("NOPERM this user has no permissions to run the '" + strings.ToLower(name) + "' command")
	}
	if r := s.elsewhere(keysOf(name, args)); r != "" {
		return r
	}
	if r := s.refusesWrite(&c, false, s.Full); r != "" {
		return r
	}
	if s.Refuses != "" && !c.connection && !c.stale {
		return failed(s.Refuses)
	}
	return c.do(s, args[1:])
}

// refusesWrite says why the server carries out no such command, or nothing if it does. Dirty says that the script has
// written before, which then goes on.
func (s *Server) refusesWrite(c *command, dirty, full bool) failed {
	switch {
	case !c.write || dirty:
	case s.Readonly:
		return "READONLY You can't write against a read only replica."
	case s.Alone:
		return "NOREPLICAS Not enough good replicas to write."
	case full && c.grows:
		return "OOM command not allowed when used memory > 'maxmemory'."
	}
	return ""
}

// command is what is known of a command.
type command struct {
	write      bool // it may write
	grows      bool // it may need memory
	connection bool // it says something of the connection only
	stale      bool // it needs no data
	inScript   bool
	do         func(s *Server, args []string) any
}

var commands map[string]command

func init() {
	read := func(do func(*Server, []string) any) command { return command{inScript: true, do: do} }
	write := func(do func(*Server, []string) any) command { return command{inScript: true, write: true, do: do} }
	grow := func(do func(*Server, []string) any) command {
		return command{inScript: true, write: true, grows: true, do: do}
	}
	connection := func(do func(*Server, []string) any) command { return command{connection: true, do: do} }
	ok := func(*Server, []string) any { return status("OK") }
	commands = map[string]command{
		"TIME": {inScript: true, stale: true, do: (*Server).time}, "CLUSTER": {do: (*Server).cluster},
		"GET": read((*Server).get), "MGET": read((*Server).mget), "SET": grow((*Server).set),
		"SETRANGE": grow((*Server).setRange), "DEL": write((*Server).del), "PEXPIRE": write((*Server).pexpire),
		"LLEN": read((*Server).llen), "LINDEX": read((*Server).lindex), "LRANGE": read((*Server).lrange),
		"RPUSH": grow((*Server).rpush), "LSET": grow((*Server).lset), "LTRIM": write((*Server).ltrim), "LREM": write((*Server).lrem),
		"ZADD": grow((*Server).zadd), "ZCARD": read((*Server).zcard), "ZCOUNT": read((*Server).zcount),
		"ZSCORE": read((*Server).zscore), "ZREM": write((*Server).zrem), "ZREMRANGEBYSCORE": write((*Server).zremRangeByScore),
		"ZRANGEBYSCORE":    read(func(s *Server, args []string) any { return s.zrangeByScore(args, false) }),
		"ZREVRANGEBYSCORE": read(func(s *Server, args []string) any { return s.zrangeByScore(args, true) }),
		"EVAL":             {do: (*Server).eval}, "EVALSHA": {do: (*Server).evalsha},
		"PING":  connection(func(*Server, []string) any { return status("PONG") }),
		"HELLO": connection((*Server).hello), "SELECT": connection(ok),
	}
}

func (s *Server) time([]string) any {
	now := s.Now()
	return []any{strconv.FormatInt(now/1e6, 10), strconv.FormatInt(now%1e6, 10)}
}

func (s *Server) hello([]string) any {
	return []any{"server", "redis", "version", "7.0.15", "proto", int64(2), "id", int64(1), "mode", "standalone", "role", "master", "modules", []any{}}
}

// appendReply appends a reply as it goes over the wire.
func appendReply(to []byte, reply any) []byte {
	switch r := reply.(type) {
	case nil:
		return append(to, "$-1\r\n"...)
	case status:
		return append(append(append(to, '+'), r...), "\r\n"...)
	case failed:
		return append(append(append(to, '-'), r...), "\r\n"...)
	case int64:
		return append(strconv.AppendInt(append(to, ':'), r, 10), "\r\n"...)
	case string:
		to = append(strconv.AppendInt(append(to, '$'), int64(len(r)), 10), "\r\n"...)
		return append(append(to, r...), "\r\n"...)
	case []any:
		to = append(strconv.AppendInt(append(to, '*'), int64(len(r)), 10), "\r\n"...)
		for _, element := range r {
			to = appendReply(to, element)
		}
		return to
	}
	panic(fmt.Sprintf("no reply: %T", reply))
}

// Command returns the first command of some bytes, and what is behind it. It returns nil if not all of it has come.
func Command(b []byte) (args []string, rest []byte) {
	n, b, ok := length(b, '*')
	for ; ok && n > 0; n-- {
		var size int
		if size, b, ok = length(b, '$'); !ok || len(b) < size+2 {
			return nil, nil
		}
		args, b = append(args, string(b[:size])), b[size+2:]
	}
	if !ok {
		return nil, nil
	}
	return args, b
}

func length(b []byte, kind byte) (n int, rest []byte, ok bool) {
	if len(b) == 0 {
		return 0, nil, false
	}
	if b[0] != kind {
		panic(fmt.Sprintf("no command: %q", b))
	}
	for i := 1; i+1 < len(b); i++ {
		if b[i] == '\r' {
			return n, b[i+2:], true
		}
		n = 10*n + int(b[i]-'0')
	}
	return 0, nil, false
}
