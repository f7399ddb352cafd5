package logs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
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

// open returns the parser of a format.
func (f *format) open(o Options) (parser, error) {
	b := &builder{of: Format{Name: f.name}, requests: o.Requests}
	switch {
	case f.name == "nginx":
		return newNginx(b, o.LogFormat)
	case f.name == "w3c":
		return &w3c{texts: texts{builder: b}}, nil
	case f.lines != nil:
		return newTexts(b, f.lines), nil
	}
	return &objects{builder: b, columns: columnsOf(f.columns), prefixes: f.prefixes}, nil
}

// choose returns the parser for a log that begins so: that of the format that is wanted, or the one that understands
// most of the first lines. It has learned from them.
func choose(name string, begin []byte, o Options) (best parser, err error) {
	wanted := cmp.Or(strings.ToLower(o.Format), "auto")
	if len(o.LogFormat) > 0 && wanted == "auto" {
		wanted = "nginx"
	}
	if len(o.LogFormat) > 0 && wanted != "nginx" {
		return nil, fmt.Errorf("the text of a log format is for the format nginx, got the format %q too", o.Format)
	}
	if wanted != "auto" {
		i := slices.IndexFunc(formats, func(f format) bool { return f.name == wanted })
		if i < 0 {
			return nil, fmt.Errorf("format must be auto or one of %s, got %q", Formats(), o.Format)
		}
		if best, err = formats[i].open(o); err == nil {
			try(best, begin)
		}
		return best, err
	}
	most := 0
	for _, f := range formats {
		p, err := f.open(o)
		if err != nil { // of nginx, which needs a text
			continue
		}
		if n := try(p, begin); n > most || len(begin) == 0 && best == nil {
			best, most = p, n
		}
	}
	if best == nil {
		first, _, _ := bytes.Cut(begin, []byte{'\n'})
		return nil, fmt.Errorf(`%s: none of the first lines is in a format that is known (%s): name one with --format, or give the text of nginx's log_format with --log-format; the first line is %q`,
			name, Formats(), quote(first))
	}
	return best, nil
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
		switch err := p.parse(text, &r); {
		case err == nil:
			score += enough
		case text[0] != '{':
		case err == errNoRequest && r.Start.IsZero(), err == errNoAddress, errors.Is(err, errTaken):
			score++
		}
	}
	return score
}
