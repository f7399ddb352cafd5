package cli

import (
	"encoding/base64"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// shellWord quotes text as one word for a shell, unless that is not needed. Control characters and
// bytes that are not UTF-8 become escapes in $'...', which bash, zsh and ksh understand, so that
// the terminal does not interpret them.
func shellWord(text string) string {
	plain, printable := text != "", true
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd"), !unicode.IsPrint(r):
			printable = false
		case !strings.ContainsRune("-._~/:@%+,=", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r):
			plain = false
		}
	}
	switch {
	case !printable:
		return "$'" + escapeForShell(text) + "'"
	case !plain || text[0] == '~' || text[0] == '=': // a shell expands words that begin with ~ or =
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

// shellKey returns a key in a form that can be pasted after the name of a zone.
func shellKey(t adminapi.KeyText) string {
	key, err := t.Bytes()
	switch {
	case err != nil:
		return "?"
	case t.Truncated > 0:
		return fmt.Sprintf("%s... (%d bytes)", shellWord(key), t.Truncated)
	case strings.IndexByte(key, 0) >= 0: // an argument cannot have a NUL byte
		return "--key-base64 " + base64.StdEncoding.EncodeToString([]byte(key))
	case strings.HasPrefix(key, "-"):
		return "-- " + shellWord(key)
	}
	return shellWord(key)
}
