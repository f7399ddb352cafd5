package logs

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// parser reads lines of one format.
type parser interface {
	// parse makes a record of a line. The error errNoRequest is for lines that are understood, and have
	// no request.
	parse(line string, to *Record) error

	// format says what the lines until now can tell.
	format() *Format
}

// Formats returns the names of all formats, as a list in words.
func Formats() string {
	names := []string{}
	for _, f := range formats {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}

// open returns the parser of a format, nil if there is none of this name.
func open(name string, o Options) (parser, error) {
	for _, f := range formats {
		if f.name != name {
			continue
		}
		b := newBuilder(name, o)
		switch {
		case name == "nginx":
			return newNginx(b, o.LogFormat)
		case name == "w3c":
			return &w3c{builder: b}, nil
		case f.lines != nil:
			return newTexts(b, f.lines), nil
		default:
			return &objects{builder: b, columns: columnsOf(f.columns), prefixes: f.prefixes}, nil
		}
	}
	return nil, fmt.Errorf("format must be auto or one of %s, got %q", Formats(), o.Format)
}

// choose returns the parser for a log that begins so.
func choose(name string, begin []byte, o Options) (parser, error) {
	wanted := strings.ToLower(o.Format)
	if as, ok := aliases[wanted]; ok {
		wanted = as
	}
	switch {
	case len(o.LogFormat) > 0 && (wanted == "" || wanted == "auto"):
		wanted = "nginx"
	case len(o.LogFormat) > 0 && wanted != "nginx":
		return nil, fmt.Errorf("the text of a log format is for the format nginx, got the format %q too", o.Format)
	case wanted == "" || wanted == "auto":
		return detect(name, begin, o)
	}
	return open(wanted, o)
}

// detect returns the parser that understands most of the first lines.
func detect(name string, begin []byte, o Options) (best parser, err error) {
	most := 0
	for _, f := range formats {
		if f.name == "nginx" {
			continue // it needs a text
		}
		p, err := open(f.name, o)
		if err != nil {
			return nil, err
		}
		if n := try(p, begin); n > most {
			best, most = p, n
		}
	}
	if best != nil {
		return best, nil
	}
	first, _, _ := bytes.Cut(bytes.TrimLeft(begin, "\r\n\t "), []byte{'\n'})
	return nil, fmt.Errorf(`%s: none of the first lines is in a format that is known (%s): name one with --format, or give the text of nginx's log_format with --log-format; the first line is %q`,
		name, Formats(), quote(first))
}

// try returns how well a parser understands the lines of a sample. Requests count most.
func try(p parser, begin []byte) (score int) {
	const enough = 200
	var r Record
	for n := 0; n < enough; n++ {
		line, rest, found := bytes.Cut(begin, []byte{'\n'})
		if !found && n > 0 {
			break // it may be cut
		}
		begin = rest
		text := unwrap(string(bytes.TrimSuffix(line, []byte{'\r'})))
		if strings.TrimSpace(text) == "" {
			continue
		}
		err := p.parse(text, &r)
		isObject := text[0] == '{'
		switch {
		case err == nil:
			score += enough
		case isObject && (err == errNoRequest && r.Start.IsZero() || errors.Is(err, errPart) || errors.Is(err, errNoAddress)):
			score++
		}
	}
	return score
}
