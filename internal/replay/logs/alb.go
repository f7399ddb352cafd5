package logs

import (
	"bytes"
	"time"
)

// alb reads the access log of an Application Load Balancer of AWS.
type alb struct {
	*builder
	s scanner // undoes escapes
}

func newALB(b *builder, _ Options) (parser, error) { return &alb{builder: b}, nil }

func (*alb) format() Format {
	return Format{Name: "alb", Header: Known{Names: []string{"User-Agent"}}, Host: true, Scheme: true, Duration: true, Step: time.Microsecond}
}

// albColumns are the first columns. Between them are the three durations.
var albColumns = [...]column{
	0:  {kind: kindScheme},
	1:  {kind: kindEnd},
	3:  {kind: kindClientIP},
	8:  {kind: kindStatus},
	11: {kind: kindSize},
	12: {kind: kindRequest},
	13: {kindHeader, "User-Agent"},
	21: {kind: kindStart},
}

// fewest is the number of columns that every version of the format has.
const fewest = 14

func (a *alb) parse(line []byte, to *Record) error {
	a.begin(to)
	a.s.start(nil)
	n := 0
	for ; n < len(albColumns) && len(line) > 0; n++ {
		var v []byte
		if line[0] == '"' {
			a.s.turn(line)
			if v = a.s.quoted(); a.s.bad {
				return errCut
			}
			line = bytes.TrimLeft(line[a.s.at:], " ")
		} else if v, line, _ = bytes.Cut(line, []byte{' '}); n == 0 && a.scheme(v) == "" {
			return errCut
		}
		switch {
		case n >= 5 && n <= 7: // processing times; -1 if the target has not answered
			to.Duration += parseDuration(v, time.Second)
		case string(v) != "-" && len(v) > 0:
			a.put(albColumns[n], v)
		}
	}
	if n < fewest {
		return errCut
	}
	if a.to.Method == "-" {
		return errNoRequest // what came was malformed
	}
	a.splitURL()
	return a.finish()
}

// splitURL takes the scheme and the host from the URL that the log has in place of the URI.
func (a *alb) splitURL() {
	scheme, rest, ok := bytes.Cut([]byte(a.to.URI), []byte("://"))
	if !ok {
		return
	}
	slash := bytes.IndexByte(rest, '/')
	if slash < 0 {
		rest = append(rest, '/')
		slash = len(rest) - 1
	}
	a.to.Scheme = a.scheme(scheme)
	a.to.Host = a.text(bytes.TrimSuffix(bytes.TrimSuffix(rest[:slash], []byte(":443")), []byte(":80")))
	a.to.URI = string(rest[slash:])
}
