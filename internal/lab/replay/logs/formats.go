package logs

import (
	"fmt"
	"strings"
)

// format says how to read the lines of a format.
type format struct {
	name string

	// columns are the members of JSON, each with the variable that says the same. Nested members have the
	// names of both. The names of headers follow behind the prefixes.
	columns  string
	prefixes [2]string

	// lines are patterns of a text, the more precise ones first. They are written like the log_format of
	// nginx; <a|b> is one of two texts.
	lines []string
}

// formats has all formats. Of formats that understand as many lines, the first one is chosen.
var formats = []format{
	{name: "caddy", columns: `level:level ts:ts time:msec timestamp:msec @timestamp:msec logger:logger
		user_id:remote_user duration:request_duration status:status resp_headers:all_resp_headers
		request:object request.remote_ip:realip_remote_addr request.remote_addr:realip_remote_addr
		request.client_ip:remote_addr request.proto:server_protocol request.method:request_method request.host:http_host
		request.uri:request_uri request.headers:all_headers request.tls:object`},
	{name: "ingress-nginx", lines: []string{
		combined + ` $request_length $request_time [$_] [$_] $_ $_ $_ $_ $_`,
	}},
	{name: "nginx-proxy-manager", lines: []string{
		`[$time_local] <|$_ $_ >$status - $request_method $scheme $host "$request_uri" [Client $remote_addr] ` +
			`[Length $_] [Gzip $_] <|[Sent-to $_] >"$http_user_agent" "$http_referer"`,
	}},
	{name: "combined", lines: []string{
		`<|$vhost >` + combined + `<| "$forwarded"| $seconds| rt=$request_time| "$forwarded" $seconds>`,
		// Traefik writes when a request began.
		`$remote_addr $_ $remote_user [$time_start] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" ` +
			`$_ "$_" "$_" ${request_ms}ms`,
		`<|$vhost >` + common,
		`<|$vhost >` + combined + `< "$forwarded" $seconds| "$forwarded"| $seconds| rt=$request_time|> $tail`,
		`<|$vhost >` + common + ` $tail`,
	}},
	{name: "haproxy", lines: []string{
		// The frontend, the backend and its server, the times, and what was captured of headers.
		`<|$_]: >$addr_port [$time_start] $_ $_ $_/$_/$_/$_/$request_ms $status $_ $_ $_ $_ $_ $_ ` +
			`"$request_url"<| $tail>`,
		`<|$_]: >$addr_port [$time_start] $_: $tail`, // an error before a request
	}},
	{name: "alb", lines: []string{
		alb + ` $_ $_ $_ "$_" "$_" "$_" $_ $time_start<| $tail>`,
		alb + `<| $tail>`,
	}},
	{name: "envoy-text", lines: []string{
		`[$time_start] "$request" $status $_ <|$_ $_ "$_" >$_ $_ $request_ms $_ ` +
			`"$forwarded" "$http_user_agent" "$http_x_request_id" "$http_host" "$_"<| $_ $_ $_ $remote_addr $_ $_>`,
	}},
	{name: "w3c"},
	{name: "cloudflare", columns: `EdgeStartTimestamp:time_start EdgeEndTimestamp:msec ClientIP:remote_addr
		ClientRequestMethod:request_method ClientRequestScheme:scheme ClientRequestHost:http_host
		ClientRequestURI:request_uri ClientRequestPath:uri ClientRequestProtocol:server_protocol
		ClientRequestUserAgent:http_user_agent ClientRequestReferer:http_referer EdgeResponseStatus:status
		RequestHeaders:headers ResponseHeaders:resp_headers`},
	{name: "traefik", prefixes: [2]string{"request_", "downstream_"}, columns: `StartUTC:time_start
		StartLocal:time_start time:msec Duration:request_ns ClientHost:remote_addr ClientAddr:realip_remote_addr
		ClientUsername:remote_user RequestMethod:request_method RequestScheme:scheme RequestHost:host
		RequestAddr:http_host RequestPath:request_uri RequestProtocol:server_protocol DownstreamStatus:status`},
	// The names in the formats of Istio and Envoy Gateway, and of Envoy's own examples.
	{name: "envoy", columns: `start_time:time_start duration:request_ms downstream_remote_address:remote_addr
		downstream_direct_remote_address:realip_remote_addr method:request_method :method:request_method
		scheme:scheme x-forwarded-proto:scheme authority:http_host :authority:http_host path:request_uri
		:path:request_uri x-envoy-origin-path:request_uri x-envoy-original-path:request_uri protocol:server_protocol
		response_code:status user_agent:http_user_agent
		user-agent:http_user_agent referer:http_referer x_forwarded_for:http_x_forwarded_for
		x-forwarded-for:http_x_forwarded_for request_id:http_x_request_id x-request-id:http_x_request_id`},
	{name: "gcp", columns: `timestamp:time_start httpRequest:object httpRequest.requestMethod:request_method
		httpRequest.requestUrl:request_url httpRequest.status:status
		httpRequest.userAgent:http_user_agent
		httpRequest.remoteIp:remote_addr httpRequest.referer:http_referer httpRequest.latency:request_time
		httpRequest.protocol:server_protocol`},
	{name: "nginx-json"},
	{name: "nginx"},
}

const (
	common   = `$remote_addr $_ $remote_user [$time_local] "$request" $status $body_bytes_sent`
	combined = common + ` "$http_referer" "$http_user_agent"`
	alb      = `$scheme $time_iso8601 $_ $remote_addr $_ $request_time $request_time $request_time $status $_ $_ ` +
		`$_ "$request_url" "$http_user_agent"`
)

// expand returns a text with each of its choices.
func expand(text string) (all []string) {
	before, rest, found := strings.Cut(text, "<")
	if !found {
		return []string{text}
	}
	choices, rest, _ := strings.Cut(rest, ">")
	for choice := range strings.SplitSeq(choices, "|") {
		for _, behind := range expand(rest) {
			all = append(all, before+choice+behind)
		}
	}
	return all
}

// newTexts returns the parser of a format whose lines have patterns.
func newTexts(b *builder, lines []string) *texts {
	t := &texts{builder: b}
	for _, line := range lines {
		for _, text := range expand(line) {
			p, err := compile(text)
			if err != nil {
				panic(err)
			}
			t.patterns = append(t.patterns, p)
		}
	}
	return t
}

// newNginx returns the parser of what the user says lines have.
func newNginx(b *builder, formats []string) (*texts, error) {
	t := &texts{builder: b}
	for _, text := range formats {
		p, err := compile(text)
		if err != nil {
			return nil, fmt.Errorf("log format: %w", err)
		}
		switch {
		case !p.has("time_start", "time_local", "time_iso8601", "msec"):
			return nil, fmt.Errorf("log format: it has no time: add $msec, $time_iso8601 or $time_local, got %q", text)
		case !p.has("remote_addr", "realip_remote_addr", "proxy_protocol_addr", "forwarded", "addr_port"):
			return nil, fmt.Errorf("log format: it has no client address: add $remote_addr, got %q", text)
		case !p.has("request") && !(p.has("request_method") && p.has("request_uri", "uri", "document_uri")):
			return nil, fmt.Errorf("log format: it has no request: add $request, got %q", text)
		}
		t.patterns = append(t.patterns, p)
	}
	if len(t.patterns) == 0 {
		return nil, fmt.Errorf(`the format nginx needs the text of its log_format: --log-format '$remote_addr [$time_local] "$request" $status'`)
	}
	return t, nil
}
