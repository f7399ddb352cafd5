package simredis

import (
	"net"
	"strconv"
	"strings"
)

// Sentinel is a Redis Sentinel that watches one master. It is not safe for concurrent use.
type Sentinel struct {
	Name   string // of the master
	Master string // its address
	Epoch  int64  // of the last failover that this Sentinel knows
}

// Do carries out a command, and returns the reply as it goes over the wire.
func (s *Sentinel) Do(args ...string) []byte { return appendReply(nil, s.reply(args)) }

func (s *Sentinel) reply(args []string) any {
	name := strings.ToUpper(args[0])
	switch {
	case name == "HELLO":
		return []any{"server", "redis", "version", "7.0.15", "proto", int64(2), "id", int64(1), "mode", "sentinel", "modules", []any{}}
	case name == "SENTINEL" && len(args) == 3:
		return s.sentinel(strings.ToUpper(args[1]), args[2])
	}
	return failed("ERR unknown command '" + args[0] + "', with args beginning with: ")
}

func (s *Sentinel) sentinel(command, name string) any {
	host, port, _ := net.SplitHostPort(s.Master)
	switch {
	case command == "GET-MASTER-ADDR-BY-NAME" && name == s.Name:
		return []any{host, port}
	case command == "GET-MASTER-ADDR-BY-NAME":
		return absent{}
	case command == "MASTER" && name == s.Name:
		return []any{"name", s.Name, "ip", host, "port", port, "flags", "master", "config-epoch", strconv.FormatInt(s.Epoch, 10)}
	case command == "MASTER":
		return failed("ERR No such master with that name")
	}
	return failed("ERR unknown subcommand '" + command + "'. Try SENTINEL HELP.")
}

// Switch has the Sentinel know of a failover.
func (s *Sentinel) Switch(master string, epoch int64) { s.Master, s.Epoch = master, epoch }
