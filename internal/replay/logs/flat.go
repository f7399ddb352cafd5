package logs

import (
	"bytes"
	"net/http"
	"time"
)

// flat reads JSON whose members are columns: Cloudflare's, Traefik's and Envoy's, and nginx's if the
// members are named like the variables.
type flat struct {
	*builder
	s       scanner
	columns map[string]column
	of      Format

	// The names of headers follow behind these prefixes, perhaps with underscores.
	request, response string
	underscores       bool
	fields            map[string]string // names of headers by the names of members
}

func (f *flat) format() Format { return f.of }

func (f *flat) parse(line []byte, to *Record) error {
	object := bytes.IndexByte(line, '{') // docker compose and others write something in front
	if object < 0 {
		return errCut
	}
	f.begin(to)
	s := &f.s
	s.start(line[object:])
	for ok := s.enter('{'); ok; ok = s.more('{') {
		key := s.key()
		c, known := f.columns[string(key)]
		switch {
		case known:
		case f.request != "" && bytes.HasPrefix(key, []byte(f.request)):
			c = column{kindHeader, f.prefixed(key, f.request, &f.of.Header)}
		case f.response != "" && bytes.HasPrefix(key, []byte(f.response)):
			c = column{kindRespHeader, f.prefixed(key, f.response, &f.of.RespHeader)}
		}
		switch c.kind {
		case kindIgnored:
			s.skip()
		case kindHeaders:
			to.Header = f.appendFields(s, to.Header, 0)
		case kindRespHeaders:
			to.RespHeader = f.appendFields(s, to.RespHeader, 1)
		default:
			if v, ok := s.scalar(); ok && len(v) > 0 && string(v) != "-" {
				f.put(c, v)
			}
		}
	}
	switch {
	case !s.whole():
		return errCut
	case to.Method == "" && to.URI == "" && to.ClientIP == "" && to.RemoteIP == "":
		return errOther
	}
	return f.finish()
}

// prefixed returns the name of the header that follows a prefix, and notes that lines have it.
func (f *flat) prefixed(key []byte, prefix string, known *Known) string {
	name, ok := f.fields[string(key)]
	if !ok {
		field := key[len(prefix):]
		if f.underscores {
			field = bytes.ReplaceAll(field, []byte{'_'}, []byte{'-'})
		}
		name = http.CanonicalHeaderKey(string(field))
		if len(f.fields) < mostNames {
			f.fields[string(key)] = name
			known.add(name)
		}
	}
	return name
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
	return &flat{builder: b, columns: traefikColumns, request: "request_", response: "downstream_", fields: map[string]string{}, of: Format{
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
	return &flat{builder: b, columns: nginxVariables, request: "http_", response: "sent_http_", underscores: true, fields: map[string]string{}, of: Format{
		Name: "nginx-json", Host: true, Duration: true, User: true, Step: time.Second,
	}}, nil
}
