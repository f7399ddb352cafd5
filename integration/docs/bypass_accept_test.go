//go:build deep

package docs_test

// to returns a change of a plain request: its method, target and header lines.
func to(method, target string, lines ...string) func(try) try {
	return func(q try) try {
		q.method, q.target = method, target
		return q.with(lines...)
	}
}

// from returns a change of a plain request that another client sends it.
func from(client string) func(try) try {
	return func(q try) try {
		q.client = client
		return q
	}
}

// sending returns a change of a plain request that gives it a body.
func sending(body string, q func(try) try) func(try) try {
	return func(plain try) try {
		plain = q(plain)
		plain.body = body
		return plain
	}
}

// requests are what zones limit whose matchers are not read by this test.
var requests = map[string][]func(try) try{
	"agents.md: Count by fields of the body/tools":                  {sending(toolCall, to("POST", "/mcp", "Content-Type: application/json"))},
	"agents.md: Count by fields of the body/render":                 {sending(renderCall, to("POST", "/mcp", "Content-Type: application/json"))},
	"agents.md: Count GraphQL by operation/imports":                 {sending(`{"operationName":"ImportOrders"}`, to("POST", "/graphql"))},
	"agents.md: Limit crawlers by who they are/crawlers":            {from("192.0.2.65")},
	"agents.md: Limit agents that sign their requests/agents":       {to("GET", "/", partner.signs("example.com")...), to("GET", "/", stranger.signs("example.com")...)},
	"agents.md: Limit agents that sign their requests/visitors":     {to("GET", "/", stranger.signs("example.com")...)},
	"recipes.md: Limit what writes more than what reads/comments":   {to("POST", "/api/item/17/comment")},
	"recipes.md: Limit WebSockets/websockets":                       {to("GET", "/", "Connection: Upgrade", "Upgrade: websocket")},
	"recipes.md: Limit logins by address and account/login_address": {sending(aliceLogsIn, to("POST", "/login"))},
	"recipes.md: Limit logins by address and account/login_user":    {sending(aliceLogsIn, to("POST", "/login"))},
	"recipes-api.md: Limit by claims of a JWT/token_checks":         {to("GET", "/", "Authorization: Bearer "+subject("alice").token())},
	"recipes-api.md: Limit by claims of a JWT/subjects":             {to("GET", "/", "Authorization: Bearer "+subject("alice").token())},
}

const (
	aliceLogsIn = `{"username":"alice","password":"x"}`
	renderCall  = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"render"}}`
	toolCall    = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search"}}`
)

// accepted are bypasses that get through an example, and why that is right.
var accepted = map[string]string{
	"headers.md: Browsers/clients: GET, HEAD or OPTIONS":                                "preflights count in the other zone alone",
	"headers.md: Browsers/preflights: GET, HEAD or OPTIONS":                             "other methods count in the other zone alone",
	"headers.md: Browsers/preflights: other methods":                                    "other methods count in the other zone alone",
	"headers.md: Browsers/preflights: the method in another case":                       "that is another method, and counts in the other zone alone",
	"json.md: Matcher sets/logins: GET, HEAD or OPTIONS":                                "the matcher leaves them out, because they show the form",
	"recipes.md: Limit what writes more than what reads/comments: GET, HEAD or OPTIONS": "reading comments counts in the other zone alone",
}
