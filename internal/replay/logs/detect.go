package logs

import (
	"bytes"
	"fmt"
	"strings"
)

// parser reads lines of one format.
type parser interface {
	// parse makes a record of a line. The error errNoRequest is for lines that are understood, and have
	// no request.
	parse(line string, to *Record) error

	// format says what the lines can tell. It may depend on the lines that were read.
	format() Format
}

// formats has all formats. Of formats that understand as many lines, the first one is chosen.
var formats = []struct {
	name string
	open func(*builder, Options) (parser, error)
}{
	{"caddy", newCaddy},
	{"combined", newCombined},
	{"alb", newALB},
	{"w3c", newW3C},
	{"cloudflare", newCloudflare},
	{"traefik", newTraefik},
	{"envoy", newEnvoy},
	{"nginx-json", newNginxJSON},
	{"nginx", newNginx},
}

// aliases are other names of formats.
var aliases = map[string]string{"common": "combined", "cloudfront": "w3c", "iis": "w3c"}

// Formats returns the names of all formats, as a list in words.
func Formats() string {
	names := []string{}
	for _, f := range formats {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}

// choose returns the parser for a log that begins so.
func choose(name string, begin []byte, o Options) (parser, error) {
	wanted := strings.ToLower(o.Format)
	if as, ok := aliases[wanted]; ok {
		wanted = as
	}
	switch {
	case o.LogFormat != "" && (wanted == "" || wanted == "auto"):
		wanted = "nginx"
	case o.LogFormat != "" && wanted != "nginx":
		return nil, fmt.Errorf("the text of a log format is for the format nginx, got the format %q too", o.Format)
	case wanted == "" || wanted == "auto":
		return detect(name, begin, o)
	}
	for _, f := range formats {
		if f.name == wanted {
			p, err := f.open(newBuilder(o), o)
			if err != nil {
				return nil, err
			}
			try(p, begin) // it learns from the first lines
			return p, nil
		}
	}
	return nil, fmt.Errorf("format must be auto or one of %s, got %q", Formats(), o.Format)
}

// detect returns the parser that understands most of the first lines.
func detect(name string, begin []byte, o Options) (parser, error) {
	var best parser
	most, b := 0, newBuilder(o)
	for _, f := range formats {
		if f.name == "nginx" {
			continue // it needs a text
		}
		p, err := f.open(b, o)
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
		if line = bytes.TrimSuffix(line, []byte{'\r'}); len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		switch err := p.parse(string(line), &r); {
		case err == nil:
			score += enough
		case err == errNoRequest && r.Start.IsZero() && line[0] == '{':
			score++
		}
	}
	return score
}
