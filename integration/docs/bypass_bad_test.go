//go:build deep

package docs_test

// badName is before the names of bad examples.
const badName = "bad: "

// badFields are the fields of requests of which badExamples have variables. A variable joins different values of a field.
var badFields = []string{
	"X-Forwarded-For", "X-Real-IP", "CF-Connecting-IP", "True-Client-IP", "X-Client-IP", "X-Cluster-Client-IP", "Fastly-Client-IP",
	"X-Original-Forwarded-For", "Forwarded", "X-Forwarded-Host",
}

// badExamples are zones with a hole, and the bypass that finds it.
var badExamples = []struct{ bypass, zone string }{
	{"X-Forwarded-For by the client", "key {vars.X-Forwarded-For}"},
	{"X-Real-IP by the client", "key {vars.X-Real-IP}"},
	{"CF-Connecting-IP by the client", "key {vars.CF-Connecting-IP}"},
	{"True-Client-IP by the client", "key {vars.True-Client-IP}"},
	{"X-Client-IP by the client", "key {vars.X-Client-IP}"},
	{"X-Cluster-Client-IP by the client", "key {vars.X-Cluster-Client-IP}"},
	{"Fastly-Client-IP by the client", "key {vars.Fastly-Client-IP}"},
	{"X-Original-Forwarded-For by the client", "key {vars.X-Original-Forwarded-For}"},
	{"Forwarded by the client", "key {vars.Forwarded}"},
	{"a chain in X-Forwarded-For", "key \"{vars.X-Forwarded-For} {method}\""},
	{"another host or path in a field", "key {vars.X-Forwarded-Host}"},
	{"a new key", "key {header.X-Api-Key}"},
	{"a new key as a parameter", "key {query.key}"},
	{"a new cookie", "key {cookie.session}"},
	{"a new user id", "key {header.X-User}"},
	{"a new Authorization", "key {header.Authorization}"},
	{"a new host", "key {host}"},
	{"no key", "key {header.X-Api-Key}\nmissing_key skip"},
	{"host in upper case", "key {vars.host}"},
	{"host with a dot or port", "key {vars.hostport}"},
	{"a whole URL as the target", "key {vars.uri}"},
	{"a target without a path", "key {vars.path}"},
	{"path in upper case", "match path /login*\nkey {vars.path}"},
	{"path with slashes and dots", "match path /login*\nkey \"{client_ip} {vars.path}\""},
	{"path with encoded slashes and dots", "match path /login*\nkey \"{vars.path} {client_ip}\""},
	{"encoded path", "match path /login*\nkey {vars.uri}"},
	{"path with an end", "match path /login\nkey {client_ip}"},
	{"other queries", "key {uri}"},
	{"a path that is exempt", "match path /login*\nkey {client_ip}\nexempt expression `{http.request.orig_uri}.startsWith(\"/healthz\")`"},
	{"GET, HEAD or OPTIONS", "match not method HEAD\nkey {client_ip}"},
	{"other methods", "match method POST\nkey {client_ip}"},
	{"the method in another case", "match method PUT\nkey {client_ip}"},
	{"a method in a field", "match not header X-HTTP-Method-Override *\nkey {client_ip}"},
	{"a preflight", "match not header Access-Control-Request-Method *\nkey {client_ip}"},
	{"a WebSocket", "match not header Connection *Upgrade*\nkey {client_ip}"},
	{"HTTP/2", "match not protocol http/2\nkey {client_ip}"},
	{"HTTP/1.0", "match protocol http/1.1+\nkey {client_ip}"},
	{"Expect", "match not header Expect *\nkey {client_ip}"},
	{"a body", "match not header Content-Length *\nkey {client_ip}"},
	{"fields of monitoring and bots", "exempt header X-Monitoring yes\nkey {client_ip}"},
	{"a field that exempts", "exempt header X-From-Us true\nkey {client_ip}"},
	{"fields of browsers and caches", "match not header Range *\nkey {client_ip}"},
	{"a cost by the client", "cost {header.X-Cost} 1\nkey {client_ip}"},
	{"a plan or limit by the client", "events {header.X-Quota} 5\nkey {client_ip}"},
	{leavingEarly, "key {client_ip}\ncharge on_response {\nstatus 401 499\nheader X-Reached *\n}"},
	{sameNetwork, "key {client_ip}\nipv6_prefix 128"},
}
