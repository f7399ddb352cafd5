package logs

import (
	"fmt"
	"net/url"
	"strings"
)

// w3c reads the extended log format of the W3C: CloudFront's, and that of IIS. A line #Fields names the
// columns of the lines behind it.
type w3c struct {
	*builder
	columns    []column
	cloudFront bool
}

var w3cColumns = columnsOf(`date:date time:clock date-local:date time-local:clock timestamp:msec c-ip:remote_addr
	cs-method:request_method cs-uri:request_uri cs-uri-stem:uri cs-uri-query:args cs-host:http_host cs(host):host
	x-host-header:http_host cs-protocol:scheme s-port:scheme cs-version:server_protocol
	cs-protocol-version:server_protocol cs-username:remote_user sc-status:status
	x-forwarded-for:http_x_forwarded_for time-taken:request_ms timetakenms:request_ms`)

// fields learns the columns. CloudFront has the host of the client in x-host-header, and its own in cs(Host).
func (w *w3c) fields(names string) {
	w.columns = w.columns[:0]
	w.cloudFront = strings.Contains(names, "x-edge-")
	for _, name := range strings.Fields(strings.ToLower(names)) {
		c, known := w3cColumns[name]
		of, field, isField := strings.Cut(strings.TrimSuffix(name, ")"), "(")
		switch {
		case w.cloudFront && name == "time-taken":
			c = columnOf("request_time")
		case known || !isField:
		case of == "cs":
			c = columnOf("http_" + field)
		case of == "sc":
			c = columnOf("sent_http_" + field)
		}
		w.see(c)
		if put := c.put; c.field != "" || name == "cs-username" {
			c.put = func(b *builder, v string) error { return put(b, w.unescape(v)) }
		}
		w.columns = append(w.columns, c)
	}
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
		v, rest, _ := strings.Cut(line, between)
		if quoted, isQuoted := strings.CutPrefix(line, `"`); isQuoted && between == " " {
			v, rest, _ = strings.Cut(quoted, `"`)
			rest = strings.TrimPrefix(rest, " ")
		}
		line = rest
		if n < len(w.columns) && w.columns[n].put != nil && value(v) != "" {
			_ = w.columns[n].put(w.builder, v) // finish says what is missing
		}
	}
	if n != len(w.columns) {
		return fmt.Errorf("it has %d columns, and #Fields names %d", n, len(w.columns))
	}
	return w.finish()
}

// unescape decodes a text in which blanks were not allowed: IIS writes +, and CloudFront %20.
func (w *w3c) unescape(v string) string {
	text, err := url.PathUnescape(v)
	switch {
	case strings.Contains(v, " "): // it was quoted
	case !w.cloudFront:
		return strings.ReplaceAll(v, "+", " ")
	case err == nil:
		return text
	}
	return v
}
