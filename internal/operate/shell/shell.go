// Package shell quotes names and keys for a shell.
package shell

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// Word quotes text as one word for a shell, unless that is not needed. Control characters and
// bytes that are not UTF-8 become escapes in $'...', which bash, zsh and ksh understand, so that
// the terminal does not interpret them.
func Word(text string) string {
	safe, printable := text != "", true
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd"), !unicode.IsPrint(r):
			printable = false
		case !strings.ContainsRune("-._~/:@%+,=", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r):
			safe = false
		}
	}
	switch {
	case !printable:
		return "$'" + escapeForShell(text) + "'"
	case !safe || text[0] == '~' || text[0] == '=': // a shell expands words that begin with ~ or =
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	return text
}

func escapeForShell(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == '\\' || r == '\'':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(r) && (r != utf8.RuneError || size > 1):
			b.WriteRune(r)
		default:
			for _, c := range []byte(text[:size]) {
				fmt.Fprintf(&b, `\%03o`, c) // of fixed length, unlike \x
			}
		}
		text = text[size:]
	}
	return b.String()
}

// Key returns a key in a form that can be pasted after the name of a zone: its parts, if it has
// several.
func Key(t adminapi.KeyText) string {
	key, err := t.Bytes()
	switch {
	case err != nil:
		return "?"
	case t.Truncated > 0 && len(t.Parts) > 0:
		return fmt.Sprintf("%s... (%d bytes)", Words(t.Parts), t.Truncated)
	case t.Truncated > 0:
		return fmt.Sprintf("%s... (%d bytes)", Word(key), t.Truncated)
	case strings.IndexByte(key, 0) >= 0: // an argument cannot have a NUL byte
		return "--key-base64 " + base64.StdEncoding.EncodeToString([]byte(key))
	}
	words := []string{key}
	if len(t.Parts) > 0 && t.KeyBase64 == "" { // otherwise the parts are not exact
		words = t.Parts
	}
	if slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(word, "-") }) {
		return "-- " + Words(words)
	}
	return Words(words)
}

// ShowKey returns a key for a table: as [Key] has it, unless it has no value at all.
func ShowKey(t adminapi.KeyText) string {
	if t.Truncated == 0 && (t.Key == "" || len(t.Parts) > 0 && !slices.ContainsFunc(t.Parts, func(part string) bool { return part != "" })) {
		return "(no key)"
	}
	return Key(t)
}

// Words quotes each text as one word.
func Words(texts []string) string {
	words := make([]string, len(texts))
	for i, text := range texts {
		words[i] = Word(text)
	}
	return strings.Join(words, " ")
}
