package routes

import (
	"encoding/json"
	"net/http"
	"path"
	"regexp/syntax"
	"slices"
	"strings"
)

// Origin is a text with placeholders that the value of another placeholder is made from.
type Origin struct {
	Text string

	// Pattern is a regular expression that chooses the value, and that any client can match if it
	// chooses the text. It is empty if the value is the text.
	Pattern string
}

// Origins returns what handlers make the value of a placeholder from, as far as clients could choose
// it: not by looking up whole values.
func (r *Routes) Origins(placeholder string) []Origin { return r.origins[placeholder] }

// Controls reports whether some handler before a zone of the loaded handler sets or removes a header of
// requests, so that the one of the client is not seen. If several handlers have a zone of that name, one
// of them is enough.
func (r *Routes) Controls(zone, field string) bool {
	return slices.ContainsFunc(r.before[zone], func(pattern string) bool {
		same, _ := path.Match(pattern, strings.ToLower(field))
		return same
	})
}

func (r *Routes) addOrigin(placeholder string, o Origin) {
	if strings.Contains(o.Text, "{") {
		r.origins[placeholder] = append(r.origins[placeholder], o)
	}
}

// fieldsOf notes the headers that the handler headers sets or removes.
func (r *Routes) fieldsOf(config json.RawMessage) {
	var headers struct {
		Request struct {
			Set    http.Header `json:"set"`
			Delete []string    `json:"delete"`
		} `json:"request"`
	}
	if json.Unmarshal(config, &headers) != nil {
		return
	}
	for field := range headers.Request.Set {
		r.fields = append(r.fields, strings.ToLower(field))
	}
	for _, field := range headers.Request.Delete {
		r.fields = append(r.fields, strings.ToLower(field))
	}
}

// mapping notes what a handler map sets, and where clients can choose it.
func (r *Routes) mapping(config json.RawMessage) {
	var m struct {
		Source       string   `json:"source"`
		Destinations []string `json:"destinations"`
		Mappings     []struct {
			Pattern string `json:"input_regexp"`
		} `json:"mappings"`
	}
	if json.Unmarshal(config, &m) != nil {
		return
	}
	for _, destination := range m.Destinations {
		name := strings.Trim(destination, "{}")
		r.sets[name] = true
		for _, mapping := range m.Mappings {
			if mapping.Pattern != "" && matchesMany(mapping.Pattern) {
				r.addOrigin(name, Origin{m.Source, mapping.Pattern})
				break
			}
		}
	}
}

// matchesMany reports whether a pattern matches texts that it does not spell out.
func matchesMany(pattern string) bool {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil || len(re.Sub) == 0 || re.Op != syntax.OpConcat {
		return true
	}
	last := len(re.Sub) - 1
	return re.Sub[0].Op != syntax.OpBeginText || re.Sub[last].Op != syntax.OpEndText || slices.ContainsFunc(re.Sub[1:last], isOpen)
}

// isOpen reports whether a part of a pattern matches texts that it does not spell out.
func isOpen(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral, syntax.OpEmptyMatch, syntax.OpBeginText, syntax.OpEndText:
		return false
	case syntax.OpCapture, syntax.OpConcat, syntax.OpAlternate, syntax.OpQuest:
		return slices.ContainsFunc(re.Sub, isOpen)
	}
	return true
}
