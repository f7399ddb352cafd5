package protocol

import (
	"crypto/sha1" // the digest by which Redis names scripts
	"encoding/hex"

	"github.com/seed-161337e5/caddyratelimit/lua"
)

// Script is one that Redis keeps by its digest.
type Script struct {
	Text, Digest string

	finish func(text string) string
}

// NewScript returns the script that decides. Edit changes its text, and those of [Script.Finish], for tests; it
// may be nil.
func NewScript(edit func(text string) string) *Script {
	if edit == nil {
		edit = asIs
	}
	s := TextScript(edit(lua.Take.Text()))
	s.finish = edit
	return s
}

// TextScript returns a script with a text.
func TextScript(text string) *Script {
	digest := sha1.Sum([]byte(text)) // as above
	return &Script{Text: text, Digest: hex.EncodeToString(digest[:]), finish: asIs}
}

func asIs(text string) string { return text }

// Finish completes another script, for the same clock.
func (s *Script) Finish(text string) string { return s.finish(text) }
