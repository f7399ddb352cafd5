package logs

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
)

// objects reads JSON whose members are columns.
type objects struct {
	*builder
	columns  map[string]column // none if members have the names of nginx's variables
	prefixes [2]string         // behind which the names of headers follow, perhaps with underscores
}

func (o *objects) parse(line string, to *Record) error {
	o.begin(to)
	front, _, _ := strings.Cut(line, "{")
	rest, ok := o.members("", line[len(front):])
	isCaddy := o.of.Name == "caddy"
	switch {
	case !ok || strings.TrimSpace(rest) != "":
		return errCut
	case isCaddy && !o.object && (o.level == "" || !o.ts):
		return errors.New(`it has no object "request"`)
	case isCaddy && (!o.object || o.logger != "" && !strings.HasPrefix(o.logger, "http.log.access")):
		return errNoRequest // other lines have requests too, such as those about errors
	case to.Method == "" && to.URI == "" && to.ClientIP == "" && to.RemoteIP == "":
		return errOther
	case isCaddy && o.end.IsZero(): // its console encoder writes the time and the level before the object
		when, _, _ := strings.Cut(strings.TrimSpace(front), "\t")
		o.end, _ = parseTime(when)
	}
	if isCaddy {
		to.Scheme = map[bool]string{false: "http", true: "https"}[o.tls]
	}
	return o.finish()
}

// members puts the members of an object. Columns of nested ones have the names of both, with a point
// between them.
func (o *objects) members(of, text string) (rest string, ok bool) {
	return object(text, func(name, text string) (rest string, ok bool) {
		c := o.column(of + name)
		if c.members && strings.HasPrefix(text, "{") {
			o.object, o.tls = true, o.tls || name == "tls"
			return o.members(of+name+".", text)
		}
		v, rest, ok := cutValue(text)
		if !ok {
			return "", false
		}
		o.see(c)
		if c.headers {
			o.fields(c.response, v)
		} else if c.put != nil && value(scalar(v)) != "" {
			_ = c.put(o.builder, scalar(v)) // finish says what is missing
		}
		return rest, true
	})
}

// column returns the column of a member.
func (o *objects) column(member string) column {
	c, known := o.columns[member]
	switch request, response := o.prefixes[0], o.prefixes[1]; {
	case len(o.columns) == 0:
		return columnOf(member)
	case known || request == "":
	case strings.HasPrefix(member, request):
		return columnOf("http_" + member[len(request):])
	case strings.HasPrefix(member, response):
		return columnOf("sent_http_" + member[len(response):])
	}
	return c
}

// fields adds the fields of an object whose members are strings or lists of strings.
func (o *objects) fields(response bool, v string) {
	if response && o.requests {
		return
	}
	object(v, func(name, text string) (rest string, ok bool) {
		v, behind, ok := cutValue(text)
		name = http.CanonicalHeaderKey(name)
		v, isList := strings.CutPrefix(v, "[")
		for element, rest, more := cutValue(strings.TrimSpace(v)); more; element, rest, more = cutValue(next(rest)) {
			o.add(name, scalar(element), response)
			if !isList {
				break
			}
		}
		return behind, ok
	})
}

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
