package logs

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// w3c reads the extended log format of the W3C: CloudFront's, and that of IIS. A line #Fields names the
// columns of the lines behind it.
type w3c struct {
	*builder
	columns    []column
	cloudFront bool
	of         Format
}

func newW3C(b *builder, _ Options) (parser, error) {
	return &w3c{builder: b, of: Format{Name: "w3c", Step: time.Second}}, nil
}

func (w *w3c) format() Format { return w.of }

var w3cColumns = map[string]column{
	"date":                {kind: kindDate},
	"time":                {kind: kindClock},
	"date-local":          {kind: kindDate},
	"time-local":          {kind: kindClock},
	"timestamp":           {kind: kindEnd},
	"c-ip":                {kind: kindClientIP},
	"cs-method":           {kind: kindMethod},
	"cs-uri":              {kind: kindURI},
	"cs-uri-stem":         {kind: kindPath},
	"cs-uri-query":        {kind: kindQuery},
	"cs-host":             {kind: kindHost},
	"x-host-header":       {kind: kindHost}, // CloudFront: cs(Host) is the distribution
	"cs-protocol":         {kind: kindScheme},
	"s-port":              {kind: kindScheme},
	"cs-version":          {kind: kindProto},
	"cs-protocol-version": {kind: kindProto},
	"cs-username":         {kind: kindUser},
	"sc-status":           {kind: kindStatus},
	"sc-bytes":            {kind: kindSize},
	"x-forwarded-for":     {kindHeader, "X-Forwarded-For"},
}

// fields learns the columns.
func (w *w3c) fields(names string) {
	w.columns = w.columns[:0]
	w.cloudFront = strings.Contains(names, "x-edge-")
	for _, name := range strings.Fields(names) {
		c, known := w3cColumns[strings.ToLower(name)]
		switch field, ok := cutField(name, "cs"); {
		case known:
		case ok && strings.EqualFold(field, "host"):
			c = column{kind: kindWeakHost}
		case ok:
			c = column{kindHeader, http.CanonicalHeaderKey(field)}
		case strings.EqualFold(name, "time-taken") && w.cloudFront:
			c = column{kind: kindSeconds}
		case strings.EqualFold(name, "time-taken"), strings.EqualFold(name, "TimeTakenMS"):
			c = column{kind: kindMillis}
		default:
			if field, ok := cutField(name, "sc"); ok {
				c = column{kindRespHeader, http.CanonicalHeaderKey(field)}
			}
		}
		switch c.kind {
		case kindHeader:
			w.of.Header.add(c.name)
		case kindRespHeader:
			w.of.RespHeader.add(c.name)
		}
		w.columns = append(w.columns, c)
	}
	has := func(kinds ...kind) bool {
		return slices.ContainsFunc(w.columns, func(c column) bool { return slices.Contains(kinds, c.kind) })
	}
	w.of.Host = w.of.Host || has(kindHost, kindWeakHost)
	w.of.Scheme = w.of.Scheme || has(kindScheme)
	w.of.User = w.of.User || has(kindUser)
	w.of.Duration = w.of.Duration || has(kindSeconds, kindMillis)
}

// cutField returns the name of the header in cs(User-Agent).
func cutField(name, side string) (field string, ok bool) {
	rest, ok := strings.CutPrefix(strings.ToLower(name), side+"(")
	if !ok {
		return "", false
	}
	return strings.TrimSuffix(rest, ")"), true
}

func (w *w3c) parse(line string, to *Record) error {
	if line[0] == '#' {
		if names, ok := strings.CutPrefix(line, "#Fields:"); ok {
			w.fields(names)
		}
		return errNoRequest
	}
	if len(w.columns) == 0 {
		return fmt.Errorf("there is no line #Fields before it")
	}
	w.begin(to)
	between := " "
	if strings.Contains(line, "\t") {
		between = "\t"
	}
	n := 0
	for ; line != ""; n++ {
		var v string
		escaped := between == "\t" || line[0] != '"'
		if escaped {
			v, line, _ = strings.Cut(line, between)
		} else {
			v, line, _ = strings.Cut(line[1:], `"`)
			line = strings.TrimPrefix(line, " ")
		}
		if n >= len(w.columns) {
			return fmt.Errorf("it has more columns than the %d of #Fields", n)
		}
		c := w.columns[n]
		if escaped && (c.kind == kindHeader || c.kind == kindRespHeader || c.kind == kindUser) {
			v = w.unescape(v)
		}
		if value(v) != "" {
			w.put(c, v)
		}
	}
	if n != len(w.columns) {
		return fmt.Errorf("it has %d columns, and #Fields names %d", n, len(w.columns))
	}
	return w.finish()
}

// unescape decodes a text in which blanks were not allowed: IIS writes +, and CloudFront %20.
func (w *w3c) unescape(v string) string {
	if !w.cloudFront {
		return strings.ReplaceAll(v, "+", " ")
	}
	if text, err := url.PathUnescape(v); err == nil {
		return text
	}
	return v
}
