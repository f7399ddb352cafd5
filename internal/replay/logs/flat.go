package logs

import (
	"net/http"
	"strings"
	"time"
)

// flat reads JSON whose members are columns: Caddy's, Cloudflare's, Traefik's and Envoy's, and nginx's if
// the members are named like the variables.
type flat struct {
	*builder
	columns map[string]column
	of      Format

	// The names of headers follow behind these prefixes, perhaps with underscores.
	request, response string
}

func (f *flat) format() Format { return f.of }

func (f *flat) parse(line string, to *Record) error {
	if _, err := f.read(line, to); err != nil {
		return err
	}
	if to.Method == "" && to.URI == "" && to.ClientIP == "" && to.RemoteIP == "" {
		return errOther
	}
	return f.finish()
}

// read puts what an object says. It returns the text before it, as docker compose and others write one.
func (f *flat) read(line string, to *Record) (front string, err error) {
	f.begin(to)
	object := max(0, strings.IndexByte(line, '{'))
	rest, ok := f.members("", line[object:])
	if !ok || strings.TrimSpace(rest) != "" {
		return "", errCut
	}
	return line[:object], nil
}

// members puts the members of an object. Columns of nested ones have the names of both, with a point
// between them.
func (f *flat) members(of, text string) (rest string, ok bool) {
	return object(text, func(name, text string) (rest string, ok bool) {
		c, known := f.columns[of+name]
		if !known {
			c = f.prefixed(name)
		}
		if c.kind == kindObject && strings.HasPrefix(text, "{") {
			f.found = true
			return f.members(of+name+".", text)
		}
		v, rest, ok := cutValue(text)
		switch {
		case !ok || c.kind == kindIgnored:
		case c.kind == kindHeaders:
			f.to.Header = f.headers(f.to.Header, 0, v)
		case c.kind == kindRespHeaders:
			f.to.RespHeader = f.headers(f.to.RespHeader, 1, v)
		default:
			if v := scalar(v); value(v) != "" {
				f.put(c, v)
			}
		}
		return rest, ok
	})
}

// prefixed returns the column of a member that is named like a header, and notes that lines have it.
func (f *flat) prefixed(member string) column {
	if name, ok := strings.CutPrefix(member, f.request); ok && f.request != "" {
		c := column{kindHeader, fieldName(name)}
		f.of.Header.add(c.name)
		return c
	}
	if name, ok := strings.CutPrefix(member, f.response); ok && f.response != "" {
		c := column{kindRespHeader, fieldName(name)}
		f.of.RespHeader.add(c.name)
		return c
	}
	return column{}
}

// headers appends the fields of an object whose members are strings or lists of strings.
func (f *flat) headers(to []Field, list int, v string) []Field {
	if w := f.wanted[list]; w != nil && len(w) == 0 {
		return to
	}
	object(v, func(name, text string) (rest string, ok bool) {
		v, behind, ok := cutValue(text)
		name = http.CanonicalHeaderKey(name)
		v, isList := strings.CutPrefix(v, "[")
		for element, rest, more := cutValue(strings.TrimSpace(v)); more; element, rest, more = cutValue(next(rest)) {
			to = f.field(to, list, name, scalar(element))
			if !isList {
				break
			}
		}
		return behind, ok
	})
	return to
}

func newCloudflare(b *builder, _ Options) (parser, error) {
	return &flat{builder: b, columns: cloudflareColumns, of: Format{
		Name: "cloudflare", Header: Known{Names: []string{"Referer", "User-Agent"}}, Host: true, Scheme: true, Duration: true, Step: time.Millisecond,
	}}, nil
}

// cloudflareColumns are fields of the data set http_requests of Logpush.
var cloudflareColumns = map[string]column{
	"EdgeStartTimestamp":     {kind: kindStart},
	"EdgeEndTimestamp":       {kind: kindEnd},
	"ClientIP":               {kind: kindClientIP},
	"ClientRequestMethod":    {kind: kindMethod},
	"ClientRequestScheme":    {kind: kindScheme},
	"ClientRequestHost":      {kind: kindHost},
	"ClientRequestURI":       {kind: kindURI},
	"ClientRequestPath":      {kind: kindPath},
	"ClientRequestProtocol":  {kind: kindProto},
	"ClientRequestUserAgent": {kindHeader, "User-Agent"},
	"ClientRequestReferer":   {kindHeader, "Referer"},
	"EdgeResponseStatus":     {kind: kindStatus},
	"EdgeResponseBytes":      {kind: kindSize},
	"RequestHeaders":         {kind: kindHeaders},
	"ResponseHeaders":        {kind: kindRespHeaders},
}

func newTraefik(b *builder, _ Options) (parser, error) {
	return &flat{builder: b, columns: traefikColumns, request: "request_", response: "downstream_", of: Format{
		Name: "traefik", Host: true, Scheme: true, Duration: true, User: true, Step: time.Nanosecond,
	}}, nil
}

var traefikColumns = map[string]column{
	"StartUTC":              {kind: kindStart},
	"StartLocal":            {kind: kindStart},
	"time":                  {kind: kindEnd},
	"Duration":              {kind: kindNanos},
	"ClientHost":            {kind: kindClientIP},
	"ClientAddr":            {kind: kindRemoteIP},
	"ClientUsername":        {kind: kindUser},
	"RequestMethod":         {kind: kindMethod},
	"RequestScheme":         {kind: kindScheme},
	"RequestHost":           {kind: kindWeakHost},
	"RequestAddr":           {kind: kindHost},
	"RequestPath":           {kind: kindURI},
	"RequestProtocol":       {kind: kindProto},
	"RequestContentSize":    {kind: kindBytesRead},
	"DownstreamStatus":      {kind: kindStatus},
	"DownstreamContentSize": {kind: kindSize},
}

func newEnvoy(b *builder, _ Options) (parser, error) {
	return &flat{builder: b, columns: envoyColumns, of: Format{
		Name: "envoy", Header: Known{Names: []string{"User-Agent", "X-Forwarded-For", "X-Request-Id"}}, Host: true, Duration: true, Step: time.Millisecond,
	}}, nil
}

// envoyColumns are the names in the formats of Istio and Envoy Gateway, and of Envoy's own examples.
var envoyColumns = map[string]column{
	"start_time":                       {kind: kindStart},
	"duration":                         {kind: kindMillis},
	"downstream_remote_address":        {kind: kindClientIP},
	"downstream_direct_remote_address": {kind: kindRemoteIP},
	"method":                           {kind: kindMethod},
	":method":                          {kind: kindMethod},
	"scheme":                           {kind: kindScheme},
	"x-forwarded-proto":                {kind: kindScheme},
	"authority":                        {kind: kindHost},
	":authority":                       {kind: kindHost},
	"path":                             {kind: kindURI},
	":path":                            {kind: kindURI},
	"x-envoy-origin-path":              {kind: kindURI},
	"x-envoy-original-path":            {kind: kindURI},
	"protocol":                         {kind: kindProto},
	"response_code":                    {kind: kindStatus},
	"bytes_sent":                       {kind: kindSize},
	"bytes_received":                   {kind: kindBytesRead},
	"user_agent":                       {kindHeader, "User-Agent"},
	"user-agent":                       {kindHeader, "User-Agent"},
	"referer":                          {kindHeader, "Referer"},
	"x_forwarded_for":                  {kindHeader, "X-Forwarded-For"},
	"x-forwarded-for":                  {kindHeader, "X-Forwarded-For"},
	"request_id":                       {kindHeader, "X-Request-Id"},
	"x-request-id":                     {kindHeader, "X-Request-Id"},
}

// newNginxJSON reads objects whose members have the names of nginx's variables.
func newNginxJSON(b *builder, _ Options) (parser, error) {
	return &flat{builder: b, columns: nginxVariables, request: "http_", response: "sent_http_", of: Format{
		Name: "nginx-json", Host: true, Duration: true, User: true, Step: time.Second,
	}}, nil
}
