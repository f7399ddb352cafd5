package respond

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
)

// The status codes of gRPC, by https://grpc.github.io/grpc/core/md_doc_statuscodes.html.
const (
	grpcInvalidArgument   = 3
	grpcPermissionDenied  = 7
	grpcResourceExhausted = 8
	grpcInternal          = 13
	grpcUnavailable       = 14
	grpcUnauthenticated   = 16
)

// mostPushback is the longest wait in seconds that a client's library is asked to do by itself. It waits without
// telling its caller, who should hear of a longer one.
const mostPushback = 60

// grpcMediaType begins the media types of gRPC.
const grpcMediaType = "application/grpc"

// grpcForms are the forms for the media types of gRPC, and of gRPC-Web as bytes and as text.
var grpcForms = map[string]answerForm{
	grpcMediaType:               grpcForm,
	grpcMediaType + "-web":      grpcWebForm,
	grpcMediaType + "-web-text": grpcWebTextForm,
}

// grpcFormOf returns the form for a content type of gRPC, or bareForm.
func grpcFormOf(contentType string) answerForm {
	if len(contentType) < len(grpcMediaType) || !strings.EqualFold(contentType[:len(grpcMediaType)], grpcMediaType) {
		return bareForm // most requests are none of gRPC
	}
	name, _, _ := strings.Cut(mediaType(contentType), "+") // a message format may follow, such as +proto
	return grpcForms[name]
}

// The codes of gRPC for the kinds of problems, and for what is wrong with a request.
var (
	grpcOfKind = map[limiter.Problem]uint8{
		limiter.QuotaExceeded:   grpcResourceExhausted,
		limiter.AbnormalUsage:   grpcResourceExhausted,
		limiter.ReducedCapacity: grpcUnavailable,
	}
	grpcOfStatus = map[int]uint8{
		http.StatusUnauthorized:       grpcUnauthenticated,
		http.StatusForbidden:          grpcPermissionDenied,
		http.StatusTooManyRequests:    grpcResourceExhausted,
		http.StatusServiceUnavailable: grpcUnavailable,
	}
)

// grpcCode returns the code of gRPC for a refusal.
func grpcCode(kind limiter.Problem, status int) uint8 {
	other := uint8(grpcInvalidArgument)
	if status >= http.StatusInternalServerError {
		other = grpcInternal
	}
	return cmp.Or(grpcOfKind[kind], grpcOfStatus[status], other)
}

// grpcTrailers returns the status of a call, as names and values of metadata. Pushback is what a client's retry policy
// obeys, by gRFC A6.
func (t *told) grpcTrailers() [][2]string {
	pushback := "-1" // a client must not retry by itself
	if t.RetryAfter > 0 && t.RetryAfter <= mostPushback {
		pushback = strconv.FormatInt(t.RetryAfter*1000, 10)
	}
	return [][2]string{
		{"Grpc-Status", strconv.Itoa(int(grpcCode(t.kind, t.Status)))},
		{"Grpc-Message", percentEncoded(t.summary() + ". " + t.Action)},
		{"Grpc-Retry-Pushback-Ms", pushback},
	}
}

// grpcWebTrailers is the flag of a frame of gRPC-Web whose content are trailers.
const grpcWebTrailers = 0x80

// writeGRPC writes a status of gRPC as an answer that has only trailers, which are in the header then. For gRPC-Web
// they are a frame of the body, which scripts of other origins can read without further permission.
func (t *told) writeGRPC(w http.ResponseWriter, r *http.Request, form answerForm) error {
	frame := []byte{grpcWebTrailers, 0, 0, 0, 0}
	for _, one := range t.grpcTrailers() {
		if form == grpcForm {
			w.Header().Set(one[0], one[1])
		}
		frame = fmt.Appendf(frame, "%s: %s\r\n", strings.ToLower(one[0]), one[1])
	}
	binary.BigEndian.PutUint32(frame[1:], uint32(len(frame)-5)) //nolint:gosec // a few hundred bytes
	switch form {
	case grpcForm:
		frame = nil
	case grpcWebTextForm:
		frame = base64.StdEncoding.AppendEncode(nil, frame)
	}
	return writeBody(w, r, http.StatusOK, mediaType(r.Header.Get(fieldContentType)), frame)
}

// percentEncoded encodes a message as gRPC wants it: all but printable ASCII, and the percent sign.
func percentEncoded(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if c < ' ' || c > '~' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
