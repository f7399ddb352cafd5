package logs

import (
	"errors"
	"strings"
	"time"
)

// caddy reads Caddy's JSON: access logs, and the requests in a log with other lines. Encoders of Caddy
// write times in several ways, and durations too.
type caddy struct{ *flat }

func newCaddy(b *builder, _ Options) (parser, error) {
	return caddy{&flat{builder: b, columns: caddyColumns, of: Format{
		Name: "caddy", Header: Known{All: true}, RespHeader: Known{All: true},
		Host: true, Scheme: true, Duration: true, User: true, Step: time.Microsecond,
	}}}, nil
}

var caddyColumns = map[string]column{
	"level":                    {kind: kindLevel},
	"ts":                       {kind: kindTS},
	"time":                     {kind: kindEnd},
	"timestamp":                {kind: kindEnd},
	"@timestamp":               {kind: kindEnd},
	"logger":                   {kind: kindLogger},
	"bytes_read":               {kind: kindBytesRead},
	"user_id":                  {kind: kindUser},
	"duration":                 {kind: kindDuration},
	"size":                     {kind: kindSize},
	"status":                   {kind: kindStatus},
	"resp_headers":             {kind: kindRespHeaders},
	"request":                  {kind: kindObject},
	"request.remote_ip":        {kind: kindRemoteIP},
	"request.client_ip":        {kind: kindClientIP},
	"request.proto":            {kind: kindProto},
	"request.method":           {kind: kindMethod},
	"request.host":             {kind: kindHost},
	"request.uri":              {kind: kindURI},
	"request.headers":          {kind: kindHeaders},
	"request.tls":              {kind: kindObject},
	"request.tls.resumed":      {kind: kindResumed},
	"request.tls.version":      {kind: kindTLSVersion},
	"request.tls.cipher_suite": {kind: kindCipherSuite},
	"request.tls.proto":        {kind: kindTLSProto},
	"request.tls.server_name":  {kind: kindServerName},
}

func (c caddy) parse(line string, to *Record) error {
	// Caddy's console encoder writes the time and the level before the object.
	front, err := c.read(line, to)
	switch {
	case err != nil:
		return err
	case !c.found && !(c.level && c.ts):
		return errors.New(`it has no object "request"`)
	case !c.found, to.Logger != "" && !strings.HasPrefix(to.Logger, "http.log.access"):
		return errNoRequest // other lines have requests too, such as those about errors
	case c.end.IsZero():
		when, _, _ := strings.Cut(strings.TrimSpace(front), "\t")
		c.end = parseTime(when)
	}
	if err := c.finish(); err != nil {
		return err
	}
	to.Scheme = "http"
	if to.TLS != (TLS{}) {
		to.Scheme = "https"
	}
	return nil
}
