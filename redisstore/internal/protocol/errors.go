package protocol

import (
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// word is what the word says that an error begins with.
type word struct {
	kind string
	// write says that a script can meet the error too, but no later than with its first write.
	write bool
	// demoted says that the server is not the master, or is about to take over what another one has.
	demoted bool
}

// words are those that errors begin with. With each of them Redis says that it has not
// carried a command out.
var words = map[string]word{
	"LOADING":     {kind: store.FailureLoading, demoted: true},
	"MASTERDOWN":  {kind: store.FailureLoading, demoted: true},
	"READONLY":    {kind: store.FailureReadonly, write: true, demoted: true},
	"OOM":         {kind: store.FailureOOM, write: true},
	"NOAUTH":      {kind: store.FailureAuth},
	"WRONGPASS":   {kind: store.FailureAuth},
	"NOPERM":      {kind: store.FailureAuth},
	"CLUSTERDOWN": {kind: store.FailureCluster},
	"MOVED":       {kind: store.FailureCluster},
	"ASK":         {kind: store.FailureCluster},
	"TRYAGAIN":    {kind: store.FailureCluster},
	"CROSSSLOT":   {kind: store.FailureCluster},
	"MISCONF":     {kind: store.FailureOther, write: true},
	"NOREPLICAS":  {kind: store.FailureOther, write: true},
	"NOSCRIPT":    {kind: store.FailureOther},
	"BUSY":        {kind: store.FailureOther},
}

// In errors that begin with ERR: what Redis says to a client that logs in wrongly, what a
// script meets that lacks a right, and what all other errors of a script contain.
var (
	loginTexts  = []string{"ERR invalid password", "without any password configured"}
	rightsTexts = []string{
		"The user executing the script can't", // until Redis 7.0
		"ERR ACL failure in script",           // since, and Valkey
	}
	scriptTexts = []string{"ERR Error running script", "@user_script", " script: "}
)

// crowded is what Redis says, with ERR, to a connection that is one too many.
const crowded = "ERR max number of clients"

// ErrorReply is what an error that Redis answered tells.
type ErrorReply struct {
	text  string
	code  string // the word
	word  word
	known bool
}

// ReadError finds the word in an error that Redis answered. An error that a script has raised as a text
// has its word behind "ERR". Up to version 6 what a script meets is within a text of its own: "ERR Error
// running script (...): -OOM command ...".
func ReadError(text string) ErrorReply {
	e := ErrorReply{text: text}
	first, rest, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(text, "-"), "ERR "), " ")
	if e.find(first) || !e.FromScript() {
		return e
	}
	for field := range strings.FieldsSeq(rest) {
		if code, dashed := strings.CutPrefix(field, "-"); dashed && e.find(code) {
			break
		}
	}
	return e
}

// find reports whether a word is known, and takes it as that of the error then.
func (e *ErrorReply) find(code string) bool {
	e.code = code
	e.word, e.known = words[code]
	return e.known
}

// Failure returns the kind of the error, see [store.Failure].
func (e ErrorReply) Failure() string {
	switch {
	case e.known:
		return e.word.kind
	case contains(e.text, loginTexts), contains(e.text, rightsTexts):
		return store.FailureAuth
	}
	return store.FailureOther
}

// LacksRight reports whether the user may not run a command, or use a key.
func (e ErrorReply) LacksRight() bool {
	return e.code == "NOPERM" || contains(e.text, rightsTexts)
}

// FromScript reports whether a script met the error, which ran then.
func (e ErrorReply) FromScript() bool {
	return contains(e.text, scriptTexts) || contains(e.text, rightsTexts)
}

// RefusesWrite reports whether a script failed at its first write, so that nothing was
// written.
func (e ErrorReply) RefusesWrite() bool { return e.word.write }

// Demoted reports whether the server is perhaps no longer the master.
func (e ErrorReply) Demoted() bool { return e.word.demoted }

// MayHaveRun reports whether the command may have been carried out, as a whole or in part.
// Anything that is not known is treated as possibly executed, because Redis does not roll back
// a script that stops half-way.
func (e ErrorReply) MayHaveRun() bool {
	if e.FromScript() {
		return !e.word.write
	}
	return !e.known && !contains(e.text, loginTexts) && !strings.HasPrefix(e.text, crowded)
}

// contains reports whether any of the parts is in a text.
func contains(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}
