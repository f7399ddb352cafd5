//go:build deep

package docs_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// try is a request as bytes, so that it can be written in all ways.
type try struct {
	method, target, host, protocol string
	fields                         []string // lines "Name: value"
	body                           string
	client                         string // the address that the proxy names; "" without a proxy
	http2                          bool
}

// field returns the value of a header field, as the plain request has it.
func (q *try) field(name string) (value string, ok bool) {
	for _, line := range q.fields {
		if n, v, _ := strings.Cut(line, ":"); strings.EqualFold(n, name) {
			return strings.TrimSpace(v), true
		}
	}
	return "", false
}

// with returns the request with more lines.
func (q try) with(lines ...string) try {
	q.fields = append(slices.Clone(q.fields), lines...)
	return q
}

// set returns the request with a field replaced, or added.
func (q try) set(name, value string) try { return q.without(name).with(name + ": " + value) }

// without returns the request without a field.
func (q try) without(name string) try {
	q.fields = slices.DeleteFunc(slices.Clone(q.fields), func(line string) bool {
		n, _, _ := strings.Cut(line, ":")
		return strings.EqualFold(n, name)
	})
	return q
}

// at returns the request for another path, and with the same query.
func (q try) at(path string) try {
	_, query, has := strings.Cut(q.target, "?")
	if q.target = path; has {
		q.target += "?" + query
	}
	return q
}

// path is the target without its query.
func (q *try) path() string {
	path, _, _ := strings.Cut(q.target, "?")
	return path
}

// query returns the request with more in its query.
func (q try) query(more string) try {
	if strings.Contains(q.target, "?") {
		q.target += "&" + more
	} else {
		q.target += "?" + more
	}
	return q
}

// proxied is the request as the proxy sends it on. It appends the address to X-Forwarded-For, and
// replaces fields that only it sends.
func (q try) proxied(fieldOfProxy string) try {
	if q.client == "" {
		return q
	}
	if fieldOfProxy != "" {
		q = q.set(fieldOfProxy, q.client)
	}
	list := q.client
	for _, line := range q.fields {
		if name, value, _ := strings.Cut(line, ":"); strings.EqualFold(name, "X-Forwarded-For") {
			list = strings.TrimSpace(value) + ", " + list
		}
	}
	return q.set("X-Forwarded-For", list)
}

// bytes returns what is sent.
func (q *try) bytes() string {
	lines := append([]string{q.method + " " + q.target + " " + q.protocol}, q.fields...)
	if q.host != "" {
		lines = append(lines, "Host: "+q.host)
	}
	if _, chunked := q.field("Transfer-Encoding"); q.body != "" && !chunked {
		lines = append(lines, fmt.Sprint("Content-Length: ", len(q.body)))
	}
	return strings.Join(lines, "\r\n") + "\r\n\r\n" + q.body
}

// got is the response to a try.
type got struct {
	status  int
	reached bool // it came to what the limit protects
}

// open sends a request on a connection of its own, and leaves its response to the caller.
func (q try) open(t *testing.T, to string) net.Conn {
	t.Helper()
	conn, err := q.dial(to)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(patient.Patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, q.bytes()); err != nil {
		t.Fatal(err)
	}
	return conn
}

func (q *try) from() string {
	if q.client == "" {
		return "127.0.0.1"
	}
	return proxyAddress
}

func (q *try) dial(to string) (net.Conn, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(q.from())}}
	return dialer.Dial("tcp", to)
}

// send sends a request and reads the response.
func (q try) send(t *testing.T, tg *target) got {
	t.Helper()
	if q.http2 {
		return q.sendHTTP2(t, tg.address)
	}
	line := tg.lines[q.from()]
	if line == nil {
		conn := q.open(t, tg.address)
		line = &kept{conn, bufio.NewReader(conn)}
		tg.lines[q.from()] = line
	} else if _, err := io.WriteString(line, q.bytes()); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(line.reader, &http.Request{Method: strings.ToUpper(q.method)})
	if err != nil {
		t.Fatalf("%q: %v", q.bytes(), err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusSwitchingProtocols {
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			t.Fatalf("%q: %v", q.bytes(), err)
		}
	}
	// A server may answer before it has read a body. Then it closes the connection without a word.
	_, chunked := q.field("Transfer-Encoding")
	if response.Close || response.StatusCode == http.StatusSwitchingProtocols || q.body != "" || chunked {
		line.Close()
		delete(tg.lines, q.from())
	}
	return result(response)
}

func (q *try) sendHTTP2(t *testing.T, to string) got {
	t.Helper()
	transport := &http.Transport{
		Protocols:   new(http.Protocols),
		DialContext: func(context.Context, string, string) (net.Conn, error) { return q.dial(to) },
	}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	request, err := http.NewRequest(q.method, "http://"+to+q.target, strings.NewReader(q.body))
	if err != nil {
		t.Fatal(err)
	}
	request.Host = q.host
	for _, line := range q.fields {
		if name, value, _ := strings.Cut(line, ":"); !strings.EqualFold(name, "Connection") && !strings.EqualFold(name, "Upgrade") {
			request.Header.Add(name, strings.TrimSpace(value))
		}
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatalf("%q over HTTP/2: %v", q.bytes(), err)
	}
	defer response.Body.Close()
	return result(response)
}

// result reads a response. A question for a password is what the limit protects, too.
func result(response *http.Response) got {
	return got{
		status: response.StatusCode,
		reached: response.Header.Get("X-Reached") != "" || response.StatusCode == http.StatusSwitchingProtocols ||
			strings.HasPrefix(response.Header.Get("WWW-Authenticate"), "Basic"),
	}
}

// protected is the upstream of the examples.
func protected(b *harness.Backend, w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/auth" { // forward_auth asks about a key
		if r.Header.Get("X-Api-Key") != "v1" {
			w.WriteHeader(http.StatusForbidden)
		}
		return
	}
	w.Header().Set("X-Reached", "1")
	_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not see that a client has left
	if r.Header.Get("X-Gate") != "" && r.Header.Get("Upgrade") == "" {
		b.Hold(r)
	}
	if r.Header.Get("Upgrade") != "" {
		harness.AnswerAsAsked(b, w, r)
		return
	}
	if r.Header.Get("X-Status") == "401" {
		w.WriteHeader(http.StatusUnauthorized)
	}
	_, _ = io.WriteString(w, "ok")
}

// plain returns a request that meets a zone by its matchers, which must be simple ones.
func plain(l limitedZone, set object, config object) try {
	q := try{method: "GET", target: "/", host: "a.test", protocol: "HTTP/1.1"}
	for _, matchers := range append(slices.Clone(l.around), set) {
		for name, value := range matchers {
			switch name {
			case "host":
				q.host = value.([]any)[0].(string)
				if known := mapped(config, "{http.request.host}"); strings.HasPrefix(q.host, "*") && known != "" {
					q.host = known
				}
				q.host = strings.Replace(q.host, "*", "a", 1)
			case "not":
				if slices.Contains(stringsOf(value.([]any)[0].(object)["method"]), q.method) {
					q.method = "POST"
				}
			case "method":
				q.method = value.([]any)[0].(string)
			case "path":
				path := value.([]any)[0].(string)
				if prefix, under := strings.CutSuffix(path, "/*"); under {
					path = prefix + "/x"
				}
				q.target = strings.ReplaceAll(path, "*", "")
			case "client_ip":
				address, _, _ := strings.Cut(value.(object)["ranges"].([]any)[0].(string), "/")
				q.client = regexp.MustCompile(`\.0$`).ReplaceAllString(address, ".1")
			case "header":
				for field, values := range value.(object) {
					text := "x"
					if list, _ := values.([]any); len(list) > 0 {
						text = strings.ReplaceAll(list[0].(string), "*", "x")
					}
					q = q.set(field, text)
				}
			}
		}
	}
	for _, source := range sources(config) {
		value := "v1"
		if known := mapped(config, "{"+source+"}"); known != "" {
			value = known
		}
		switch in, name := place(source); in {
		case "header":
			if _, set := q.field(name); !set {
				q = q.set(name, value)
			}
		case "query":
			q = q.query(name + "=" + value)
		case "cookie":
			q = q.set("Cookie", name+"="+value)
		}
	}
	if charge, _ := l.zone["charge_on_response"].(object); charge != nil {
		if codes, _ := charge["status_code"].([]any); slices.Contains(codes, any(float64(401))) || slices.Contains(codes, any(float64(4))) {
			q = q.set("X-Status", "401")
		}
	}
	return q
}

// stringsOf are the texts of a list.
func stringsOf(list any) (texts []string) {
	values, _ := list.([]any)
	for _, value := range values {
		texts = append(texts, value.(string))
	}
	return texts
}

// placeholderName matches a placeholder.
var placeholderName = regexp.MustCompile(`\{([^{}]+)\}`)

// sources are the placeholders in the keys and plans of all zones.
func sources(config object) (names []string) {
	for _, l := range zonesIn(config) {
		plan, _ := l.zone["plan"].(object)
		for _, text := range []any{l.zone["key"], plan["of"]} {
			key, _ := text.(string)
			for _, match := range placeholderName.FindAllStringSubmatch(key, -1) {
				names = append(names, match[1])
			}
		}
	}
	return names
}

// place says where a placeholder's value is in a request.
func place(placeholder string) (in, name string) {
	for in, prefix := range map[string]string{"header": "http.request.header.", "query": "http.request.uri.query.", "cookie": "http.request.cookie."} {
		if name, ok := strings.CutPrefix(placeholder, prefix); ok {
			return in, name
		}
	}
	return "", ""
}

// mapped returns a value that a map in the config knows for a source.
func mapped(config object, source string) (value string) {
	for _, server := range servers(config) {
		eachHandler(server.(object)["routes"], nil, func(handler object, _ []object) {
			if handler["handler"] != "map" || handler["source"] != source || value != "" {
				return
			}
			for _, m := range handler["mappings"].([]any) {
				if input, _ := m.(object)["input"].(string); input != "" && value == "" {
					value = input
				}
			}
		})
	}
	return value
}
