package walk_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
)

// get returns a function that makes a request, with headers, names and values in turn.
func get(method, target string, header ...string) func() *http.Request {
	return func() *http.Request {
		r := httptest.NewRequest(method, target, nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Add(header[i], header[i+1])
		}
		return r
	}
}

// secret is the password of alice in these configs.
const secret = "alice:hiccup"

// other is a site behind the first, which is terminal.
const other = `
http:// {
	mark "another site"
}
`

// named are routes that configs can invoke.
const named = `
&(shared) {
	mark shared
}
&(refuses) {
	mark refused 429
}
`

const withPassword = `
	route {
		basic_auth {
			alice $2a$08$cy9egAr4luR06gP4k71NWeufAowZa4epgNZgNKwDAShhfOrQwRXUm
		}
		mark {http.auth.user.id}
	}`

const withTLS = `
	@secure protocol https
	@early tls early_data
	route {
		handle @secure {
			mark "secure {http.request.tls.server_name}"
			mark @early early
		}
		handle {
			mark "plain {http.request.tls.server_name}"
		}
	}`

// withState returns a function that makes a request which came over TLS.
func withState(request func() *http.Request, state tls.ConnectionState) func() *http.Request {
	return func() *http.Request {
		r := request()
		r.TLS = &state
		return r
	}
}
