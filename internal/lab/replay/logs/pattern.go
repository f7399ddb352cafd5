package logs

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// pattern is a line of a text format, written like the log_format of nginx: texts and variables in turns.
type pattern []part

// part is a variable and the text behind it. The first part of a pattern has no variable.
type part struct {
	column
	variable string
	text     string
}

var variables = regexp.MustCompile(`\$(?:\{(\w+)\}|(\w*))`)

// compile makes the pattern of a text.
func compile(text string) (pattern, error) {
	texts := variables.Split(text, -1)
	p := pattern{{text: texts[0]}}
	for i, found := range variables.FindAllStringSubmatch(text, -1) {
		name, last := found[1]+found[2], p[i]
		switch {
		case name == "":
			return nil, fmt.Errorf("there is no name behind the $ in %q", text)
		case last.variable != "" && last.text == "":
			return nil, fmt.Errorf("$%s and $%s cannot be told apart: put a blank between them", last.variable, name)
		}
		p = append(p, part{column: columnOf(name), variable: name, text: texts[i+1]})
	}
	return p, nil
}

// has reports whether the pattern has one of some variables.
func (p pattern) has(variables ...string) bool {
	return slices.ContainsFunc(p, func(p part) bool { return slices.Contains(variables, p.variable) })
}

// cut cuts a line into the values of its variables.
func (p pattern) cut(line string, values []string) ([]string, error) {
	values = values[:0]
	for i, part := range p {
		at := part.end(line)
		if i == len(p)-1 && !strings.HasPrefix(part.text, `"`) && strings.HasSuffix(line, part.text) {
			at = len(line) - len(part.text) // the last value has the rest of the line, whatever is in it
		}
		if at < 0 || i == 0 && at > 0 {
			return nil, fmt.Errorf("%q is not where the log format has it", part.text)
		}
		values, line = append(values, line[:at]), line[at+len(part.text):]
	}
	if line != "" {
		return nil, fmt.Errorf("%q follows what the log format has", line[:min(len(line), 20)])
	}
	return values, nil
}

// end returns where the value of a part ends, -1 if the text behind it is not there. A list goes on behind a
// comma and a blank.
func (p *part) end(line string) int {
	at := find(line, p.text)
	isList := strings.HasPrefix(p.text, " ") && (p.put == nil || p.variable == "remote_addr")
	for isList && at > 0 && line[at-1] == ',' {
		more := find(line[at+1:], p.text)
		if more < 0 {
			return -1
		}
		at += 1 + more
	}
	return at
}

// texts reads lines that have one of some patterns.
type texts struct {
	*builder
	patterns []pattern // in the order in which they are tried
	values   []string
}

func (t *texts) parse(line string, to *Record) (why error) {
	for i, p := range t.patterns {
		values, err := p.cut(line, t.values)
		if err == nil {
			t.values = values
			err = t.read(p, to)
		} else if t.of.Name != "nginx" { // the user does not know the pattern
			err = errCut
		}
		if err == nil || err == errNoRequest {
			if !p.has("tail") { // no other pattern can say more, and the next line is likely to be alike
				copy(t.patterns[1:i+1], t.patterns[:i])
				t.patterns[0] = p
			}
			return err
		}
		if why == nil || values != nil {
			why = err
		}
	}
	return why
}

// read makes a record of the values of a pattern.
func (t *texts) read(p pattern, to *Record) error {
	t.begin(to)
	for i, part := range p {
		v := t.values[i]
		if part.put == nil || value(v) == "" {
			continue
		}
		if t.of.Name != "haproxy" && t.of.Name != "w3c" { // which write a backslash as it is
			v = unescape(v)
		}
		if err := part.put(t.builder, v); err != nil {
			return err
		}
	}
	err := t.finish()
	for _, part := range p {
		t.see(part.column)
	}
	return err
}

// find returns where the text behind a value begins, -1 if it is not there. A quote that the value has is
// escaped.
func find(line, text string) int {
	for from := 0; ; {
		at := strings.Index(line[from:], text)
		if at < 0 {
			return -1
		}
		at += from
		escapes := at - len(strings.TrimRight(line[:at], `\`))
		if escapes%2 == 0 || text[0] != '"' {
			return at
		}
		from = at + 1
	}
}

var escapes = regexp.MustCompile(`(?s)\\(?:x..|u....|.)`)

// unescape decodes what servers write with backslashes, such as \x22. What is not a known escape stays.
func unescape(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	return escapes.ReplaceAllStringFunc(text, func(escape string) string {
		r, multibyte, _, err := strconv.UnquoteChar(escape, '"')
		switch {
		case err != nil:
			return escape
		case multibyte:
			return string(r)
		}
		return string([]byte{byte(r)})
	})
}
