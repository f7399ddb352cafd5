package simredis

import (
	"fmt"
	"slices"
	"strings"
)

// View is what a node of a Cluster knows of it. The address of a node is its host and port.
type View struct {
	Own   string // the node's own address
	Table *Table // which node has which slots

	// Leaving are slots of this node that are on their way to another one, and Coming those that are on their way to
	// this node.
	Leaving, Coming map[uint16]string

	// Down says that the node sees too few of the others.
	Down bool
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
	asking := s.asking
	s.asking = false
	if s.View != nil && len(args) == 1 && strings.EqualFold(args[0], "ASKING") {
		s.asking = true
		return appendReply(nil, status("OK"))
	}
	return appendReply(nil, s.reply(args, asking))
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
func (s *Server) elsewhere(keys []string, asking bool) failed {
	v := s.View
	if v == nil || len(keys) == 0 {
		return ""
	}
	slot := Slot(keys[0])
	there, missing := 0, 0
	for i, key := range keys {
		switch {
		case i == 0 && v.Table.Owner(slot) == "":
			return "CLUSTERDOWN Hash slot not served"
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
	case v.Down:
		return "CLUSTERDOWN The cluster is down"
	case owner == v.Own && leaving && missing > 0 && there > 0:
		return "TRYAGAIN Multiple keys request during rehashing of slot"
	case owner == v.Own && leaving && missing > 0:
		return failed(fmt.Sprintf("ASK %d %s", slot, to))
	case owner != v.Own && coming && asking && len(keys) > 1 && missing > 0:
		return "TRYAGAIN Multiple keys request during rehashing of slot"
	case owner != v.Own && coming && asking, owner == v.Own:
		return ""
	}
	return failed(fmt.Sprintf("MOVED %d %s", slot, owner))
}

// inScript is what a script hears where a client would hear that its keys are elsewhere.
func inScript(elsewhere failed) failed {
	switch word, _, _ := strings.Cut(string(elsewhere), " "); word {
	case "CLUSTERDOWN":
		return "ERR Script attempted to execute a command while the cluster is down"
	case "CROSSSLOT":
		return "ERR Script attempted to access keys that do not hash to the same slot"
	}
	return "ERR Script attempted to access a non local key in a cluster node"
}

// cluster is CLUSTER SLOTS and CLUSTER INFO.
func (s *Server) cluster(args []string) any {
	switch {
	case s.View == nil:
		return failed("ERR This instance has cluster support disabled")
	case strings.EqualFold(args[0], "INFO"):
		return fmt.Sprintf("cluster_current_epoch:%d\r\n", s.View.Table.Epoch)
	}
	all := []any{}
	for _, r := range s.View.Table.Ranges {
		if host, port, ok := strings.Cut(r.Owner, ":"); ok {
			id := fmt.Sprintf("%040x", r.Owner)[:40]
			all = append(all, []any{int64(r.First), int64(r.Last), []any{host, number(port), id, []any{}}})
		}
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

// Leaving are the slots that are on their way to other nodes.
func (s *Server) Leaving() map[uint16]string {
	if s.View == nil {
		return nil
	}
	return s.View.Leaving
}

// Coming are the slots that are on their way to this node.
func (s *Server) Coming() map[uint16]string {
	if s.View == nil {
		return nil
	}
	return s.View.Coming
}
