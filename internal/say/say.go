// Package say has what all texts for a terminal need.
package say

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// narrow is how many columns a line has at least behind its indent.
const narrow = 20

// Wrap breaks a text into lines of at most this width, if it is not 0. The first one begins with one text, all others with an
// indent. Longer words are cut. What a terminal would interpret is escaped, because errors of servers may have anything in them.
func Wrap(first, indent, text string, width int) (lines []string) {
	if width > 0 {
		width = max(width, utf8.RuneCountInString(indent)+narrow)
	}
	line, words := first, 0
	for word := range strings.FieldsSeq(text) {
		word = Printable(word)
		if words > 0 && width > 0 && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines, line, words = append(lines, line), indent, 0
		}
		if words > 0 {
			line += " "
		}
		for width > 0 && utf8.RuneCountInString(line+word) > width {
			runes, room := []rune(word), max(0, width-utf8.RuneCountInString(line))
			lines, line, word = append(lines, line+string(runes[:room])), indent, string(runes[room:])
		}
		line += word
		words++
	}
	return append(lines, line)
}

// Printable returns text without anything that a terminal would act on.
func Printable(text string) string {
	if !strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) || c == utf8.RuneError }) {
		return text
	}
	var b strings.Builder
	for i, c := range text {
		switch _, size := utf8.DecodeRuneInString(text[i:]); {
		case c == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case unicode.IsPrint(c):
			b.WriteRune(c)
		default:
			quoted := strconv.QuoteRune(c)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

// Cut shortens a text that is wider than this.
func Cut(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}

// CutMiddle shortens a text that is wider than this, and leaves both ends.
func CutMiddle(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	left := width / 2
	return string(runes[:left]) + "…" + string(runes[len(runes)-(width-left-1):])
}

// Plural returns a number of things.
func Plural[N int | int64](n N, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
