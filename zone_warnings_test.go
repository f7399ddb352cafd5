package caddyratelimit_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// site is a Caddyfile with a zone that has some options, behind and before other directives.
func site(before, zone, after string) string {
	return "{\n\torder rate_limit before basic_auth\n\torder request_header before rate_limit\n\torder forward_auth before rate_limit\n}\nhttp://localhost {\n" + before +
		"\nrate_limit {\nzone z {\nevents 10\nwindow 1m\n" + zone + "\n}\n}\n" + after + "\nrespond ok\n}\n"
}

// warnedZone has the options of a zone, and what is around it.
type warnedZone struct {
	before, zone, after string
	want                string // of the one warning; "" for none
}

// warnedZones are zones that loading warns about, and others like them.
func warnedZones() map[string]warnedZone {
	const plans = "{\nfree 1/1m\ndefault free\n}"
	const user = "basic_auth {\nbob $2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG\n}"
	return map[string]warnedZone{
		"client":                       {zone: "key {client_ip}"},
		"no key":                       {},
		"constant":                     {zone: "key everybody"},
		"forgotten braces":             {zone: "key client_ip", want: `key "client_ip" is a constant, so all clients share one limit; did you mean {client_ip}, in JSON {http.vars.client_ip}?`},
		"forgotten braces, long":       {zone: "key http.request.host", want: `did you mean {host}, in JSON {http.request.host}?`},
		"forgotten braces, header":     {zone: "key header.X-Api-Key", want: `did you mean {header.X-Api-Key}, in JSON {http.request.header.X-Api-Key}?`},
		"old name":                     {zone: "key remote_ip", want: `did you mean {client_ip}, in JSON {http.vars.client_ip}?`},
		"query":                        {zone: "key {uri}", want: "any client can write the query string, and gets a new limit with each value; use {path}, in JSON {http.request.uri.path}"},
		"query beside":                 {zone: `key "{client_ip} {query}"`, want: "use {path}"},
		"one parameter":                {zone: "key {query.key}"},
		"browser":                      {zone: `key "{client_ip} {header.User-Agent}"`, want: "leave it out of the key"},
		"browser alone":                {zone: "key {header.User-Agent}"},
		"browser, set by the site":     {before: "request_header User-Agent {host}", zone: `key "{client_ip} {header.User-Agent}"`},
		"long prefix":                  {zone: "key {client_ip}\nipv6_prefix 65", want: "set ipv6_prefix 64 or less"},
		"a network":                    {zone: "key {client_ip}\nipv6_prefix 64"},
		"long prefix, no address":      {zone: "key {header.X}\nipv6_prefix 128"},
		"limit met first":              {zone: "key {client_ip}\n}\nzone y {\nrate 1/10s\nkey {client_ip}", want: "it never refuses: zone y, with the same key, admits at most 7 in 1m; set it below that, or remove the zone"},
		"limit met first that holds":   {zone: "key {client_ip}\n}\nzone y {\nrate 2/10s\nkey {client_ip}"},
		"limit met first, other key":   {zone: "key {client_ip}\n}\nzone y {\nrate 1/10s\nkey {host}"},
		"limit met first, not for all": {zone: "key {client_ip}\n}\nzone y {\nrate 1/10s\nmatch path /a\nkey {client_ip}"},
		"limit met first, other cost":  {zone: "key {client_ip}\ncost 3\n}\nzone y {\nrate 1/10s\nkey {client_ip}"},
		"environment":                  {zone: "key {env.HOME}", want: `key "{env.HOME}" is the same for all requests`},
		"body":                         {zone: "key {http.request.body}", want: "the key contains the body of requests"},
		"fields of a body":             {zone: "key {http.rate_limit.json.id}", want: `any client can write fields of a body, and gets a new limit with each value; write {client_ip}, in JSON {http.vars.client_ip}, before it`},
		"fields of a body, beside":     {zone: `key "{client_ip} {http.rate_limit.json.id}"`},
		"user, behind":                 {zone: "key {http.auth.user.id}", after: user, want: "authentication comes after rate_limit"},
		"user, before":                 {before: "route {\n" + user + "\nrate_limit {\nzone y {\nevents 1\nwindow 1m\nkey {http.auth.user.id}\n}\n}\n}"},
		"user, nobody":                 {zone: "key {http.auth.user.id}", want: "nothing in this config authenticates users"},
		"variable":                     {before: "vars tenant {header.Tenant}", zone: "key {vars.tenant}"},
		"map":                          {before: "map {host} {tier} {\ndefault free\n}", zone: "key {tier}"},
		"allowed":                      {zone: "key {json.username}\nallow_unknown_placeholders"},
		"fallback":                     {zone: "cost {vars.tokens} 1", want: "cost: nothing in this config sets this placeholder, so the fallback always holds"},
		"cost":                         {zone: "cost {vars.x}", want: "cost: nothing in this config sets this placeholder, so all requests are refused"},
		"burst":                        {zone: "algorithm token_bucket\nburst {quota}", want: "burst: nothing in this config sets this placeholder"},
		"plan":                         {zone: "plan {vars.plan} {\nfree 1/1m\ndefault free\n}", want: `plan "{http.vars.plan}": nothing in this config sets this placeholder, so no request has a plan of its own`},
		"plan by a header":             {zone: "plan {header.X-Plan} " + plans, want: `plan "{http.request.header.X-Plan}": any client can choose header X-Plan, and with it the limit; remove it before rate_limit (request_header -X-Plan, in a route block)`},
		"plan by a query":              {zone: "plan {query.plan} " + plans, want: "any client can choose query parameter plan, and with it the limit; look a secret up with map"},
		"plan by a trusted header":     {before: "request_header -X-Plan", zone: "plan {header.X-Plan} " + plans},
		"plan removed too late":        {zone: "plan {header.X-Plan} " + plans, after: "route {\nrequest_header -X-Plan\n}", want: "any client can choose header X-Plan"},
		"plan by all of a kind":        {before: "request_header -X-P*", zone: "plan {header.X-Plan} " + plans},
		"plan by forward_auth":         {before: "forward_auth localhost:1 {\nuri /\ncopy_headers X-Plan\n}", zone: "plan {header.X-Plan} " + plans},
		"plan by a variable":           {before: "vars plan {header.X-Plan}", zone: "plan {vars.plan} " + plans, want: `plan "{http.vars.plan}": any client can choose header X-Plan`},
		"plan by a whole key":          {before: "map {header.X-Api-Key} {plan} {\nkey-of-alice free\n~^key-of-b(ob|en)$ free\n}", zone: "plan {plan} " + plans},
		"plan by a part of a key":      {before: "map {header.X-Api-Key} {plan} {\nkey-of-alice free\n~^us- free\n}", zone: "plan {plan} " + plans, want: `plan "{plan}": any client can send a header X-Api-Key that matches ~^us-, and so choose the limit; map whole values`},
		"plan by a part of a host":     {before: "map {host} {plan} {\n~^us free\n}", zone: "plan {plan} " + plans},
		"limit by a cookie":            {zone: "algorithm token_bucket\nburst {cookie.burst} 5", want: "burst: any client can choose cookie burst, and with it the limit"},
		"cost by a header":             {zone: "cost {header.X-Cost} 1", want: "cost: any client can choose header X-Cost, and with it the limit"},
		"key by a proxy's header":      {zone: "key {header.X-Forwarded-For}", want: `key "{http.request.header.X-Forwarded-For}": any client can write header X-Forwarded-For, and gets a new limit with each value; set trusted_proxies and client_ip_headers in the global servers option, and use {client_ip}`},
		"key with such a header":       {zone: `key "{path} {header.cf-connecting-ip}"`, want: "header Cf-Connecting-Ip"},
		"key by its variable":          {before: "vars client {header.X-Real-IP}", zone: "key {vars.client}", want: "header X-Real-Ip"},
		"key that the site writes":     {before: "request_header X-Real-IP {remote_host}", zone: "key {header.X-Real-IP}"},
		"key written too late":         {zone: "key {header.X-Real-IP}", after: "route {\nrequest_header X-Real-IP {remote_host}\n}", want: "header X-Real-Ip"},
		"key by another header":        {zone: "key {header.X-Api-Key}"},
		"cost by the length":           {zone: "cost {header.Content-Length} 1"},
		"exempt by a header":           {zone: "exempt header X-Monitoring yes", want: "exempt matches a header that any client can send, X-Monitoring;"},
		"exempt by a secret":           {zone: "exempt header X-Monitoring 3fa85f6457174562b3fc"},
		"exempt by a beginning":        {zone: "exempt header X-Monitoring 3fa85f6457174562b3fc*", want: "X-Monitoring"},
		"exempt by both":               {zone: "exempt {\nheader X-Monitoring yes\nremote_ip 192.0.2.0/24\n}"},
	}
}

// TestWarningsAtLoad: options that do not do what they seem to do are warned about, once each, with
// the zone and what to write instead.
func TestWarningsAtLoad(t *testing.T) {
	for name, c := range warnedZones() {
		warnings, err := caddytest.Validate(t, site(c.before, c.zone, c.after))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := 1
		if c.want == "" {
			want = 0
		}
		if len(warnings) != want {
			t.Errorf("%s: %d warnings, want %d: %v", name, len(warnings), want, warnings)
			continue
		}
		if want == 1 && (!strings.Contains(warnings[0].Message, c.want) || warnings[0].ContextMap()["zone"] != "z") {
			t.Errorf("%s: got %q of zone %v, want %q", name, warnings[0].Message, warnings[0].ContextMap()["zone"], c.want)
		}
	}
}

// TestDoctorRepeatsWarnings: while a config runs, doctor says all that was warned of when it was loaded. The configs are
// all those of other tests that have warnings.
func TestDoctorRepeatsWarnings(t *testing.T) {
	configs := make(map[string]string)
	for name, c := range warnedZones() {
		if c.want != "" {
			configs[name] = site(c.before, c.zone, c.after)
		}
	}
	for _, c := range caddytest.ConfigCases(t, "") {
		if strings.Contains(c.Want, " | warn: ") {
			config, err := c.JSON()
			if err != nil {
				t.Fatal(err)
			}
			configs[c.Name] = string(config)
		}
	}
	for name, config := range configs {
		warnings := strings.Split(warned(caddytest.RunConfig(t, caddytest.FreeAddress(t), config).All()), "\n")
		said := caddytest.Admin(t, http.MethodGet, "doctor", "")
		for _, text := range warnings {
			found, fix := advice.Split(text)
			for _, part := range []string{found, fix.String()} {
				if quoted, _ := json.Marshal(part); !strings.Contains(said, strings.Trim(string(quoted), `"`)) {
					t.Errorf("%s: %q is missing in %s", name, part, said)
				}
			}
		}
		if len(warnings) < 2 { // the last one is empty
			t.Errorf("%s: no warning", name)
		}
	}
}

// TestWaitsAndTimeouts: a wait that is longer than the server has for a request is warned about.
func TestWaitsAndTimeouts(t *testing.T) {
	const said = "requests may wait here for 10s, but the server has 5s for them (timeouts %s), so some are charged and get no answer; " +
		"set %[1]s, in JSON %s, to more than 10s, or max_wait to less than 5s"
	for timeouts, jsonName := range map[string]string{
		"read_body 5s": "read_timeout", "write 5s": "write_timeout", "read_body_idle 5s 100": "read_idle_timeout", "write_idle 5s 100": "write_idle_timeout",
		"read_body 10001ms": "", "write 1h": "", "read_body_idle 5s": "", "write_idle 5s": "", "idle 5s": "", "read_header 5s": "", "read_body_idle -1s 100": "",
	} {
		for zone, waits := range map[string]bool{
			"max_wait 10s": true, "algorithm leaky_bucket\nmode queue\nmax_wait 10s": true,
			"algorithm concurrency\nmax_wait 10s": true, "algorithm leaky_bucket 10/10s\nmode queue\nburst 10": true,
			"plan {host} {\nslow {\nmax_wait 10s\n}\ndefault slow\n}": true, "max_wait 10s\ndry_run": false, "max_wait 2s": false, "": false,
		} {
			config := strings.Replace(site("", zone, ""), "{\n", "{\nservers {\ntimeouts {\n"+timeouts+"\n}\n}\n", 1)
			if strings.Contains(zone, "10/10s") {
				config = strings.Replace(config, "events 10\nwindow 1m\n", "", 1)
			}
			if strings.Contains(zone, "concurrency") {
				config = strings.Replace(config, "window 1m\n", "", 1)
			}
			warnings, err := caddytest.Validate(t, config)
			if err != nil {
				t.Errorf("%s, %s: %v", timeouts, zone, err)
				continue
			}
			name, _, _ := strings.Cut(timeouts, " ")
			want := fmt.Sprintf(said, name, jsonName)
			if jsonName == "" || !waits {
				want = ""
			}
			got := ""
			for _, w := range warnings {
				got += w.Message
			}
			if got != want {
				t.Errorf("%s, %s: got %q, want %q", timeouts, zone, got, want)
			}
		}
	}
}

// foreignMatcher is a module that is not Caddy's own.
type foreignMatcher struct{}

func init() { caddy.RegisterModule(foreignMatcher{}) }

// CaddyModule implements [caddy.Module].
func (foreignMatcher) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.matchers.foreign_test", New: func() caddy.Module { return new(foreignMatcher) }}
}

// Match implements [caddyhttp.RequestMatcher].
func (foreignMatcher) Match(*http.Request) bool { return true }

// TestRoutesAroundZone: what sets a placeholder of a key is found wherever it may be before the
// zone, and what is not Caddy's own may set any.
func TestRoutesAroundZone(t *testing.T) {
	const (
		auth    = `{"handler": "authentication", "providers": {"http_basic": {}}}`
		vars    = `{"handler": "vars", "tenant": "a"}`
		sub     = `{"handler": "subroute", "routes": [{"handle": [%s]}]}`
		foreign = `[{"foreign_test": {}}]`
		behind  = "authentication comes after rate_limit"
		unknown = "no module of Caddy sets this placeholder"
		nothing = "nothing in this config sets {"
	)
	limit := func(key, options string) string {
		return fmt.Sprintf(`{"handler": "rate_limit", "rate_limits": {"z": {"max_events": 1, "window": "1m", "key": %q%s}}}`, key, options)
	}
	user, tenant, other := limit("{http.auth.user.id}", ""), limit("{http.vars.tenant}", ""), limit("{other.thing}", "")
	within := func(handler string) string { return fmt.Sprintf(sub, handler) }
	responses := func(name, handler string) string {
		return fmt.Sprintf(`{"handler": %q, "handle_response": [{"routes": [{"handle": [%s]}]}]}`, name, handler)
	}
	invoke := `{"handler": "invoke", "name": "n"}`
	for name, c := range map[string]struct {
		routes, more string // handlers in routes of their own, and the rest of the server
		want         string // in the error or the one warning; "" for none
	}{
		"user, behind":              {routes: user + ", " + auth, want: behind},
		"user, behind in one route": {routes: within(user + ", " + auth), want: behind},
		"user, in a subroute":       {routes: auth + ", " + within(user)},
		"user, behind a subroute":   {routes: within(auth) + ", " + user},
		"user, in one route":        {routes: within(within(auth) + ", " + user)},
		"user, nested in one route": {routes: within(auth + ", " + within(user))},
		"user, invoked":             {routes: invoke + ", " + user, more: `, "named_routes": {"n": {"handle": [` + auth + `]}}`},
		"user, in a named route":    {routes: auth + ", " + invoke, more: `, "named_routes": {"n": {"handle": [` + user + `]}}`},
		"user, invoked behind":      {routes: user + ", " + invoke, more: `, "named_routes": {"n": {"handle": [` + auth + `]}}`, want: behind},
		"user, in an error route":   {routes: auth, more: `, "errors": {"routes": [{"handle": [` + user + `]}]}`},
		"user, of a response":       {routes: responses("reverse_proxy", auth) + ", " + user},
		"of a response":             {routes: responses("reverse_proxy", vars) + ", " + tenant},
		"of an intercepted one":     {routes: responses("intercept", vars) + ", " + tenant},
		"of no response":            {routes: responses("reverse_proxy", vars) + ", " + limit("{http.vars.user}", ""), want: nothing},
		"of a named route":          {routes: invoke + ", " + tenant, more: `, "named_routes": {"n": {"handle": [` + within(vars) + `]}}`},
		"foreign of the zone":       {routes: limit("{other.thing}", `, "match": `+foreign), want: unknown},
		"foreign of exempt":         {routes: limit("{other.thing}", `, "exempt": [{"not": `+foreign+`}]`), want: unknown},
		"foreign in not":            {routes: other, more: `, "named_routes": {"n": {"match": [{"not": ` + foreign + `}]}}`, want: unknown},
		"foreign of a named route":  {routes: invoke + ", " + other, more: `, "named_routes": {"n": {"match": ` + foreign + `}}`, want: unknown},
		"nothing":                   {routes: other, want: "all clients share one limit (if something does"},
		"nothing in a part":         {routes: limit("{http.vars.client_ip} {other.thing}", ""), want: "the placeholder is always empty (if something does"},
		"nothing, skipped":          {routes: limit("{other.thing}", `, "missing_key": "skip"`), want: "the zone limits no request (if something does"},
		"nothing, refused":          {routes: limit("{other.thing}", `, "missing_key": "reject"`), want: "all requests are refused (if something does"},
	} {
		config := fmt.Sprintf(`{"apps": {"http": {"servers": {"s": {"listen": [":80"], "routes": [{"handle": [%s]}]%s}}}}}`, c.routes, c.more)
		for how, config := range map[string]string{
			"one route":  config,
			"two routes": strings.ReplaceAll(config, "}, {\"handler\"", `}]}, {"handle": [{"handler"`),
		} {
			got := caddytest.ValidateJSON(t, []byte(config))
			if c.want == "" && got != "ok" || !strings.Contains(got, c.want) {
				t.Errorf("%s, %s: got %s, want %q", name, how, got, c.want)
			}
		}
	}
}
