package logs

import (
	"strings"
	"time"
)

// alb reads the access log of an Application Load Balancer of AWS.
type alb struct{ *builder }

func newALB(b *builder, _ Options) (parser, error) { return &alb{b}, nil }

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

func (a *alb) parse(line string, to *Record) error {
	a.begin(to)
	n := 0
	for ; n < len(albColumns) && line != ""; n++ {
		v, rest, ok := word(line)
		if !ok || n == 0 && scheme(v) == "" {
			return errCut
		}
		line = rest
		switch {
		case n >= 5 && n <= 7: // processing times; -1 if the target has not answered
			to.Duration += parseDuration(v, "s")
		case value(v) != "":
			a.put(albColumns[n], v)
		}
	}
	if n < fewest {
		return errCut
	}
	if to.Method == "-" {
		return errNoRequest // what came was malformed
	}
	// The log has the URL instead of the URI.
	if proto, rest, ok := strings.Cut(to.URI, "://"); ok {
		host, path, _ := strings.Cut(rest, "/")
		to.Scheme, to.Host, to.URI = scheme(proto), withoutPort(host), "/"+path
	}
	return a.finish()
}
