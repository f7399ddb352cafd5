package logs

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"time"
)

var caddyFormat = Format{
	Name: "caddy", Header: Known{All: true}, RespHeader: Known{All: true},
	Host: true, Scheme: true, Duration: true, User: true, Step: time.Microsecond,
}

// errNoRequest means that a line is understood, and is not about a request.
var errNoRequest = errors.New("not about a request")

var errNoAddress = errors.New("no client address")

// parseCaddy reads a line of Caddy's access log.
func parseCaddy(line []byte, to *Record) error {
	var l struct {
		TS       float64 `json:"ts"`
		Logger   string  `json:"logger"`
		Duration float64 `json:"duration"`
		Status   int     `json:"status"`
		Size     int64   `json:"size"`
		Read     *int64  `json:"bytes_read"`
		User     string  `json:"user_id"`
		Request  *struct {
			RemoteIP string              `json:"remote_ip"`
			ClientIP string              `json:"client_ip"`
			Proto    string              `json:"proto"`
			Method   string              `json:"method"`
			Host     string              `json:"host"`
			URI      string              `json:"uri"`
			Headers  map[string][]string `json:"headers"`
			TLS      *struct {
				Resumed     bool   `json:"resumed"`
				Version     uint16 `json:"version"`
				CipherSuite uint16 `json:"cipher_suite"`
				Proto       string `json:"proto"`
				ServerName  string `json:"server_name"`
			} `json:"tls"`
		} `json:"request"`
		RespHeaders map[string][]string `json:"resp_headers"`
		Limited     *struct {
			Outcome string `json:"outcome"`
			Zone    string `json:"zone"`
			Cost    int64  `json:"cost"`
		} `json:"rate_limit"`
	}
	if err := json.Unmarshal(line, &l); err != nil {
		return err
	}
	q := l.Request
	if q == nil {
		return errNoRequest
	}
	to.Duration = max(0, time.Duration(l.Duration*1e9))
	to.Start = time.UnixMicro(int64(math.Round(l.TS * 1e6))).Add(-to.Duration)
	to.Logger, to.Status, to.Size, to.User = l.Logger, l.Status, l.Size, l.User
	if l.Read != nil {
		to.BytesRead = *l.Read
	}
	to.RemoteIP, to.ClientIP, to.Proto, to.Method, to.Host, to.URI = q.RemoteIP, q.ClientIP, q.Proto, q.Method, q.Host, q.URI
	if to.ClientIP == "" {
		to.ClientIP = to.RemoteIP
	}
	if to.ClientIP == "" {
		return errNoAddress
	}
	to.Scheme = "http"
	if t := q.TLS; t != nil {
		to.Scheme = "https"
		to.TLS = TLS{t.Version, t.CipherSuite, t.Proto, t.ServerName, t.Resumed}
	}
	to.Header = appendFields(to.Header, q.Headers)
	to.RespHeader = appendFields(to.RespHeader, l.RespHeaders)
	if l.Limited != nil {
		to.limited = Limited(*l.Limited)
		to.Limited = &to.limited
	}
	return nil
}

// redacted is what Caddy logs in place of credentials.
const redacted = "REDACTED"

func appendFields(to []Field, header map[string][]string) []Field {
	for name, values := range header {
		for _, value := range values {
			to = append(to, Field{http.CanonicalHeaderKey(name), value, value == redacted})
		}
	}
	return to
}
