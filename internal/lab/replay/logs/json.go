package logs

import (
	"encoding/json"
	"strings"
)

// object calls member with the name of each member of a JSON object, and the text that begins with its value.
// Both return what follows. It accepts all valid JSON, and some that is not valid: most values of a line are
// passed over.
func object(text string, member func(name, text string) (rest string, ok bool)) (rest string, ok bool) {
	text, ok = strings.CutPrefix(strings.TrimSpace(text), "{")
	for ok {
		if rest, end := strings.CutPrefix(strings.TrimSpace(text), "}"); end {
			return rest, true
		}
		name, rest, isName := cutValue(strings.TrimSpace(text))
		rest, colon := strings.CutPrefix(strings.TrimSpace(rest), ":")
		if ok = isName && colon; ok {
			rest, ok = member(scalar(name), strings.TrimSpace(rest))
			text = next(rest)
		}
	}
	return "", false
}

// next passes the comma behind an element.
func next(text string) string {
	return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), ","))
}

// cutValue cuts the text of a value off.
func cutValue(text string) (value, rest string, ok bool) {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			end := find(text[i+1:], `"`)
			if end < 0 {
				return "", "", false
			}
			i += end + 1
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		default:
			if depth == 0 { // a number or a literal
				end := strings.IndexAny(text, ",:}] \t\r\n")
				return text[:max(0, end)], text[max(0, end):], end > 0
			}
		}
		switch {
		case depth == 0:
			return text[:i+1], text[i+1:], true
		case depth < 0:
			return "", "", false
		}
	}
	return "", "", false
}

// scalar returns a string, or the text of a number or of a literal. Other values are "".
func scalar(v string) string {
	switch v[0] {
	case '"':
		if !strings.Contains(v, `\`) {
			return v[1 : len(v)-1]
		}
		var text string
		if json.Unmarshal([]byte(v), &text) != nil {
			return unescape(v[1 : len(v)-1]) // nginx writes \x22
		}
		return text
	case '{', '[', 'n':
		return ""
	}
	return v
}
