package respond

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-161337e5/caddyratelimit/internal/body"
	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
)

// The codes of JSON-RPC errors: those that JSON-RPC 2.0 leaves to servers, and the one for a wrong request.
const (
	rpcLimited      = -32029
	rpcUnavailable  = -32053
	rpcWrongRequest = -32600
)

const (
	// mostRPCBody is the longest body whose ids are looked for.
	mostRPCBody = 64 << 10

	// mostRPCID is the longest id that is sent back.
	mostRPCID = 256

	// mostRPCCalls is how many calls of a batch are answered one by one. A client must not get much more than it sends.
	mostRPCCalls = 100
)

// rpcReason is why a call of JSON-RPC 2.0 has failed.
type rpcReason struct {
	Code    int     `json:"code"`
	Message string  `json:"message"`
	Data    problem `json:"data"`
}

// speaksJSONRPC reports whether a request is one of JSON-RPC: by its content type, by what MCP demands of a client, or
// by its body, if that was read.
func speaksJSONRPC(r *http.Request) bool {
	if r.Method != http.MethodPost {
		return false
	}
	switch mediaType(r.Header.Get(fieldContentType)) {
	case "application/json-rpc", "application/jsonrequest":
		return true
	case "application/json":
	default:
		return false
	}
	if r.Header.Get("Mcp-Protocol-Version") != "" || r.Header.Get("Mcp-Session-Id") != "" {
		return true
	}
	var stream, whole bool
	for _, line := range r.Header[fieldAccept] {
		for one := range strings.SplitSeq(line, ",") {
			name, quality := acceptedType(one)
			stream = stream || quality > 0 && name == "text/event-stream"
			whole = whole || quality > 0 && name == "application/json"
		}
	}
	if stream && whole {
		return true
	}
	_, spoken := rpcCallsOf(r)
	return spoken
}

// rpcCalls are the calls of a request that want an answer.
type rpcCalls struct {
	ids   []json.RawMessage // as the client has written them; null for one that is not sent back
	batch bool              // the client waits for a list of answers
}

// rpcNull is the id of an answer to a call whose id is not known.
var rpcNull = json.RawMessage("null")

// rpcCallsOf returns the calls in the body of a request, if it was read, and reports whether the body is one of JSON-RPC 2.0.
// There are none in a batch of more than mostRPCCalls.
func rpcCallsOf(r *http.Request) (calls rpcCalls, spoken bool) {
	text := body.Seen(r, mostRPCBody)
	if len(text) == 0 {
		return calls, false
	}
	var list []json.RawMessage
	if calls.batch = json.Unmarshal(text, &list) == nil && list != nil; !calls.batch {
		list = []json.RawMessage{text}
	}
	for i, one := range list {
		if i == mostRPCCalls {
			return rpcCalls{}, spoken
		}
		var members map[string]json.RawMessage
		if json.Unmarshal(one, &members) != nil || string(members["jsonrpc"]) != `"2.0"` {
			if calls.batch {
				calls.ids = append(calls.ids, rpcNull)
			}
			continue
		}
		spoken = true
		if id := members["id"]; members["method"] != nil && id != nil { // or else it is a notification, or an answer
			calls.ids = append(calls.ids, sendableID(id))
		}
	}
	return calls, spoken
}

// sendableID returns an id as it is, or null if it is too long, or neither a number nor a text in UTF-8. It must be valid JSON.
func sendableID(id json.RawMessage) json.RawMessage {
	if len(id) > mostRPCID || id[0] != '"' && id[0] != '-' && (id[0] < '0' || id[0] > '9') || !utf8.Valid(id) {
		return rpcNull
	}
	return id
}

// known reports whether a client can tell which of its calls an answer is for.
func (c *rpcCalls) known() bool {
	return slices.ContainsFunc(c.ids, func(id json.RawMessage) bool { return string(id) != string(rpcNull) })
}

// answers returns the text that answers all calls with an error. Without a call it is one answer whose id is null.
func (c *rpcCalls) answers(reason []byte) (text []byte) {
	ids, list := c.ids, c.batch
	if len(ids) == 0 {
		ids, list = []json.RawMessage{rpcNull}, false
	}
	for i, id := range ids {
		if i > 0 {
			text = append(text, ',')
		} else if list {
			text = append(text, '[')
		}
		text = append(append(text, `{"jsonrpc":"2.0","id":`...), id...)
		text = append(append(append(text, `,"error":`...), reason...), '}')
	}
	if list {
		text = append(text, ']')
	}
	return append(text, '\n')
}

// statusFor returns the status of an answer in JSON-RPC. With the id of a call it is the answer to it, which has status 200:
// clients of MCP do not look into the body of a 429. Without an id, or if the request itself is wrong, the status tells
// what happened.
func (t *told) statusFor(calls *rpcCalls) int {
	if calls.known() && t.kind != limiter.WrongRequest {
		return http.StatusOK
	}
	return t.status
}

// writeJSONRPC writes errors of JSON-RPC.
func (t *told) writeJSONRPC(w http.ResponseWriter, r *http.Request) error {
	calls, _ := rpcCallsOf(r)
	code := rpcLimited
	switch {
	case t.kind == limiter.WrongRequest:
		code = rpcWrongRequest
	case t.kind == limiter.ReducedCapacity:
		code = rpcUnavailable
	}
	reason, err := json.Marshal(rpcReason{code, t.summary() + ". " + t.action(), t.problem()})
	if err != nil {
		return err
	}
	return writeBody(w, r, t.statusFor(&calls), "application/json", calls.answers(reason))
}
