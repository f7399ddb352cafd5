package logs

import (
	"net/http"
	"strconv"
	"strings"
)

// column puts a value of a line into its place. An error says that the value cannot be what the column has.
// Values that are missing in the way of the format do not come here.
type column struct {
	put     func(b *builder, v string) error
	members bool // the value is an object whose members are columns
	headers bool // the value is an object of headers

	// field is the header that the value is of, in canonical form; "*" if lines have all headers.
	field    string
	response bool // it is of the response
}

// columns have the names of the variables of nginx that say the same, or names like those.
var columns = map[string]column{
	"time_start":   {put: start},
	"time_local":   {put: end},
	"time_iso8601": {put: end},
	"msec":         {put: end},
	"date":         {put: text(func(b *builder) *string { return &b.day })}, // in UTC
	"clock":        {put: text(func(b *builder) *string { return &b.clock })},

	"request_time":     {put: took("s")},
	"request_ms":       {put: took("ms")},
	"request_ns":       {put: took("ns")},
	"request_duration": {put: tookOfAnyUnit},
	"seconds":          {put: seconds},

	"remote_addr":         {put: address(func(b *builder) *string { return &b.to.ClientIP })},
	"realip_remote_addr":  {put: address(func(b *builder) *string { return &b.to.RemoteIP })},
	"proxy_protocol_addr": {put: address(func(b *builder) *string { return &b.to.RemoteIP })},
	"addr_port":           {put: addressAndPort},
	"forwarded":           {put: forwarded, field: forwardedFor},

	"request":         {put: requestLine},
	"request_url":     {put: requestURL},
	"request_method":  {put: text(func(b *builder) *string { return &b.to.Method })},
	"scheme":          {put: text(func(b *builder) *string { return &b.to.Scheme }, scheme)},
	"https":           {put: text(func(b *builder) *string { return &b.to.Scheme }, scheme)},
	"vhost":           {put: text(func(b *builder) *string { return &b.to.Host }, withoutPort)},
	"http_host":       {put: text(func(b *builder) *string { return &b.to.Host })},
	"host":            {put: text(func(b *builder) *string { return &b.host })},
	"server_name":     {put: text(func(b *builder) *string { return &b.host })},
	"request_uri":     {put: text(func(b *builder) *string { return &b.to.URI })},
	"uri":             {put: text(func(b *builder) *string { return &b.path })},
	"document_uri":    {put: text(func(b *builder) *string { return &b.path })},
	"args":            {put: text(func(b *builder) *string { return &b.args })},
	"query_string":    {put: text(func(b *builder) *string { return &b.args })},
	"server_protocol": {put: text(func(b *builder) *string { return &b.to.Proto })},
	"remote_user":     {put: text(func(b *builder) *string { return &b.to.User })},
	"status":          {put: status},
	"body_bytes_sent": {put: isNumber},
	"tail":            {put: tail},

	"object":           {members: true},
	"headers":          {headers: true},
	"resp_headers":     {headers: true, response: true},
	"all_headers":      {headers: true, field: "*"},
	"all_resp_headers": {headers: true, field: "*", response: true},

	"level":  {put: text(func(b *builder) *string { return &b.level })},
	"ts":     {put: ts},
	"logger": {put: text(func(b *builder) *string { return &b.logger })},
}

// columnOf returns the column with the name of a variable. One that is not known has no put.
func columnOf(variable string) column {
	if c, known := columns[variable]; known {
		return c
	}
	name, isRequest := strings.CutPrefix(variable, "http_")
	name, isResponse := strings.CutPrefix(name, "sent_http_")
	if !isRequest && !isResponse {
		return column{}
	}
	name = http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
	return column{field: name, response: isResponse, put: func(b *builder, v string) error {
		b.add(name, v, isResponse)
		return nil
	}}
}

// columnsOf reads a table of columns.
func columnsOf(table string) map[string]column {
	all := make(map[string]column)
	for _, pair := range strings.Fields(table) {
		at := strings.LastIndexByte(pair, ':')
		all[pair[:at]] = columnOf(pair[at+1:])
	}
	return all
}

// text stores a value as it is, or converted.
func text(at func(*builder) *string, convert ...func(string) string) func(*builder, string) error {
	return func(b *builder, v string) error {
		for _, f := range convert {
			v = f(v)
		}
		*at(b) = v
		return nil
	}
}

func status(b *builder, v string) error {
	b.to.Status, _ = strconv.Atoi(v)
	return isNumber(b, v)
}

// isNumber reads nothing: a line that has something else there has another pattern.
func isNumber(_ *builder, v string) error {
	if _, err := strconv.Atoi(v); err != nil {
		return errCut
	}
	return nil
}

func start(b *builder, v string) (err error) {
	b.start, err = parseTime(v)
	return err
}

// end takes the finer of two times.
func end(b *builder, v string) error {
	t, err := parseTime(v)
	if b.end.IsZero() || t.Nanosecond() > 0 {
		b.end = t
	}
	return err
}

// ts is the end as Caddy names it.
func ts(b *builder, v string) error {
	b.ts = true
	return end(b, v)
}

// took adds to the duration of the request: some logs have its parts.
func took(unit string) func(*builder, string) error {
	return func(b *builder, v string) error {
		d, err := parseDuration(v, unit)
		if b.to.Duration += d; err != nil {
			return errCut
		}
		return nil
	}
}

// seconds have a fraction. Other numbers may be anything.
func seconds(b *builder, v string) error {
	if !strings.Contains(v, ".") {
		return errCut
	}
	return took("s")(b, v)
}

// tookOfAnyUnit reads a duration in seconds with a fraction, as Go writes it, or as a whole number of
// milliseconds or nanoseconds, as Caddy's encoders are configured. Whole numbers are taken as milliseconds
// until one is 100,000 or more.
func tookOfAnyUnit(b *builder, v string) error {
	switch n, err := strconv.Atoi(v); {
	case err != nil || n == 0:
		return took("s")(b, v)
	case n >= 100_000:
		b.nanoseconds = true
	}
	if b.nanoseconds {
		return took("ns")(b, v)
	}
	return took("ms")(b, v)
}

// requestLine reads the first line of a request. Blanks belong to the URI.
func requestLine(b *builder, v string) error {
	method, rest, ok := strings.Cut(v, " ")
	if !ok || !isToken(method) || strings.HasPrefix(rest, "HTTP/") {
		return nil
	}
	b.to.Method, b.to.URI = method, rest
	if i := strings.LastIndex(rest, " HTTP/"); i >= 0 && !strings.Contains(rest[i+1:], " ") {
		b.to.URI, b.to.Proto = rest[:i], rest[i+1:]
	}
	return nil
}

// isToken reports whether the text can be a method.
func isToken(v string) bool {
	return v != "" && v != "-" && !strings.ContainsFunc(v, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// requestURL reads a URL, or the first line of a request that has one instead of its URI, as load
// balancers write them.
func requestURL(b *builder, v string) error {
	url, to := v, b.to
	if _ = requestLine(b, v); to.URI != "" {
		url = to.URI
	}
	if proto, rest, ok := strings.Cut(url, "://"); ok && url[0] != '/' && url[0] != '-' {
		host, path, _ := strings.Cut(rest, "/")
		to.Scheme, to.Host, to.URI = scheme(proto), withoutPort(host), "/"+path
	}
	return nil
}

// scheme knows what logs write for http and https.
func scheme(v string) string {
	switch strings.ToLower(v) {
	case "https", "wss", "h2", "grpcs", "on", "443":
		return "https"
	case "http", "ws", "off", "80":
		return "http"
	}
	return ""
}

// withoutPort returns a host without the port that its scheme has anyway.
func withoutPort(host string) string {
	return strings.TrimSuffix(strings.TrimSuffix(host, ":443"), ":80")
}

// tail is what may follow in a line. Quotes in it end.
func tail(_ *builder, v string) error {
	if strings.Count(v, `"`)%2 != 0 {
		return errCut
	}
	return nil
}
