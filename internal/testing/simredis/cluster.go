package simredis

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// View is what a node of a Cluster knows of it. The address of a node is its host and port.
type View struct {
	Own   string // the node's own address
	Table *Table // which node has which slots

	// Leaving are slots of this node that are on their way to another one, and Coming those that are on their way to
	// this node.
	Leaving, Coming map[uint16]string
}

// NewView returns what a node knows of a Cluster.
func NewView(own string, t *Table) *View {
	return &View{Own: own, Table: t, Leaving: make(map[uint16]string), Coming: make(map[uint16]string)}
}

// Learn has the node know a table, unless it knows a later one.
func (v *View) Learn(t *Table) {
	if t.Epoch > v.Table.Epoch {
		v.Table = t
	}
}

// Session is a connection to a server. It is not safe for concurrent use.
type Session struct {
	*Server
	asking bool // the next command may be for a slot that is on its way to this node
}

// Do carries out a command, and returns the reply as it goes over the wire.
func (s *Session) Do(args ...string) []byte {
	s.asked, s.asking = s.asking, false
	if s.View != nil && len(args) == 1 && strings.EqualFold(args[0], "ASKING") {
		s.asking = true
		return appendReply(nil, status("OK"))
	}
	return appendReply(nil, s.reply(args))
}

// keys returns those that a command names.
func keysOf(name string, args []string) []string {
	switch name {
	case "EVAL", "EVALSHA":
		return args[3 : 3+number(args[2])]
	case "DEL", "MGET":
		return args[1:]
	case "TIME", "PING", "HELLO", "SELECT", "CLUSTER", "ASKING":
		return nil
	}
	return args[1:2]
}

// elsewhere is what a node of a Cluster answers that does not carry out a command with some keys; empty: it does.
func (s *Server) elsewhere(keys []string) failed {
	v := s.View
	if v == nil || len(keys) == 0 {
		return ""
	}
	slot := Slot(keys[0])
	there, missing := 0, 0
	for _, key := range keys {
		switch {
		case Slot(key) != slot:
			return "CROSSSLOT Keys in request don't hash to the same slot"
		case s.find(key) == nil:
			missing++
		default:
			there++
		}
	}
	owner := v.Table.Owner(slot)
	to, leaving := v.Leaving[slot]
	_, coming := v.Coming[slot]
	switch {
	case owner == v.Own && leaving && missing > 0 && there > 0:
		return "TRYAGAIN Multiple keys request during rehashing of slot"
	case owner == v.Own && leaving && missing > 0:
		return failed(fmt.Sprintf("ASK %d %s", slot, to))
	case owner != v.Own && coming && s.asked && len(keys) > 1 && missing > 0:
		return "TRYAGAIN Multiple keys request during rehashing of slot"
	case owner != v.Own && coming && s.asked, owner == v.Own:
		return ""
	}
	return failed(fmt.Sprintf("MOVED %d %s", slot, owner))
}

// inScript is what a script hears where a client would hear that its keys are elsewhere.
func inScript(elsewhere failed) failed {
	if strings.HasPrefix(string(elsewhere), "CROSSSLOT") {
		return "ERR Script attempted to access keys that do not hash to the same slot"
	}
	return "ERR Script attempted to access a non local key in a cluster node"
}

// cluster is CLUSTER SLOTS and CLUSTER INFO.
func (s *Server) cluster(args []string) any {
	if strings.EqualFold(args[0], "INFO") {
		return fmt.Sprintf("cluster_current_epoch:%d\r\n", s.View.Table.Epoch)
	}
	all := []any{}
	for _, r := range s.View.Table.Ranges {
		host, port, _ := strings.Cut(r.Owner, ":")
		id := fmt.Sprintf("%040x", r.Owner)[:40]
		all = append(all, []any{int64(r.First), int64(r.Last), []any{host, number(port), id, []any{}}})
	}
	return all
}

// Give gives another server a key, as MIGRATE does.
func (s *Server) Give(key string, to *Server) {
	if e := s.find(key); e != nil {
		to.keys[key] = e.clone()
		delete(s.keys, key)
	}
}

// KeysIn returns the keys of a slot, in the order of their names.
func (s *Server) KeysIn(slot uint16) (all []string) {
	for key := range s.keys {
		if Slot(key) == slot && s.find(key) != nil {
			all = append(all, key)
		}
	}
	slices.Sort(all)
	return all
}

// Table says which node of a Cluster has which slots, since some change. It is not changed.
type Table struct {
	Epoch  int64   // how many changes there were
	Ranges []Range // in the order of their slots
}

// Range is some slots that follow each other, and the address of their node.
type Range struct {
	First, Last int
	Owner       string
}

// Owner returns the address of the node that has a slot.
func (t *Table) Owner(slot uint16) string {
	for _, r := range t.Ranges {
		if r.First <= int(slot) && int(slot) <= r.Last {
			return r.Owner
		}
	}
	return ""
}

// Replaced is the table when one node has taken the place of another one.
func (t *Table) Replaced(old, next string) *Table {
	n := &Table{t.Epoch + 1, slices.Clone(t.Ranges)}
	for i := range n.Ranges {
		if n.Ranges[i].Owner == old {
			n.Ranges[i].Owner = next
		}
	}
	return n
}

// Moved is the table when another node has a slot.
func (t *Table) Moved(slot uint16, to string) *Table {
	n, one := &Table{Epoch: t.Epoch + 1}, int(slot)
	for _, r := range t.Ranges {
		if r.Last < one || one < r.First {
			n.Ranges = append(n.Ranges, r)
			continue
		}
		if r.First < one {
			n.Ranges = append(n.Ranges, Range{r.First, one - 1, r.Owner})
		}
		n.Ranges = append(n.Ranges, Range{one, one, to})
		if one < r.Last {
			n.Ranges = append(n.Ranges, Range{one + 1, r.Last, r.Owner})
		}
	}
	return n
}

// Slots is how many slots the keys of a Cluster are spread over.
const Slots = 16384

// Slot returns the slot of a key, computed bit by bit: the CRC-16 (XMODEM) of the text in its first braces, if that is
// something.
func Slot(key string) uint16 {
	if _, behind, found := strings.Cut(key, "{"); found {
		if tag, _, closed := strings.Cut(behind, "}"); closed && tag != "" {
			key = tag
		}
	}
	crc := uint16(0)
	for _, c := range []byte(key) {
		crc ^= uint16(c) << 8
		for range 8 {
			high := crc >> 15
			crc = crc<<1 ^ high*0x1021
		}
	}
	return crc % Slots
}

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
	case name == "SENTINEL" && len(args) == 3 && args[2] == s.Name:
		return s.sentinel(strings.ToUpper(args[1]))
	}
	return failed("ERR unknown command '" + args[0] + "', with args beginning with: ")
}

func (s *Sentinel) sentinel(command string) any {
	host, port, _ := net.SplitHostPort(s.Master)
	switch command {
	case "GET-MASTER-ADDR-BY-NAME":
		return []any{host, port}
	case "MASTER":
		return []any{"name", s.Name, "ip", host, "port", port, "flags", "master", "config-epoch", strconv.FormatInt(s.Epoch, 10)}
	}
	return failed("ERR unknown subcommand '" + command + "'. Try SENTINEL HELP.")
}

// Switch has the Sentinel know of a failover.
func (s *Sentinel) Switch(master string, epoch int64) { s.Master, s.Epoch = master, epoch }
