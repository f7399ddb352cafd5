package respond

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
)

// The media types of gRPC, and of gRPC-Web as bytes and as text. A message format may follow, such as +proto.
const (
	grpcMediaType        = "application/grpc"
	grpcWebMediaType     = "application/grpc-web"
	grpcWebTextMediaType = "application/grpc-web-text"
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

// The metadata of a status. Pushback is what a client's retry policy obeys, by gRFC A6.
const (
	grpcStatus   = "Grpc-Status"
	grpcMessage  = "Grpc-Message"
	grpcPushback = "Grpc-Retry-Pushback-Ms"
)

// mostPushback is the longest wait in seconds that a client's library is asked to do by itself. It waits without
// telling its caller, who should hear of a longer one.
const mostPushback = 60

// grpcFormOf returns the form for a content type of gRPC, or bareForm.
func grpcFormOf(contentType string) answerForm {
	if len(contentType) < len(grpcMediaType) || !strings.EqualFold(contentType[:len(grpcMediaType)], grpcMediaType) {
		return bareForm // most requests are none of gRPC
	}
	name, _, _ := strings.Cut(mediaType(contentType), "+")
	switch name {
	case grpcMediaType:
		return grpcForm
	case grpcWebMediaType:
		return grpcWebForm
	case grpcWebTextMediaType:
		return grpcWebTextForm
	}
	return bareForm
}

// grpcCode returns the code of gRPC for a refusal.
func (t *told) grpcCode() uint8 {
	switch t.kind {
	case limiter.QuotaExceeded, limiter.AbnormalUsage:
		return grpcResourceExhausted
	case limiter.ReducedCapacity:
		return grpcUnavailable
	}
	switch {
	case t.status == http.StatusUnauthorized:
		return grpcUnauthenticated
	case t.status == http.StatusForbidden:
		return grpcPermissionDenied
	case t.status == http.StatusTooManyRequests:
		return grpcResourceExhausted
	case t.status == http.StatusServiceUnavailable:
		return grpcUnavailable
	case t.status >= http.StatusInternalServerError:
		return grpcInternal
	}
	return grpcInvalidArgument
}

// grpcTrailers returns the status of a call, as names and values.
func (t *told) grpcTrailers() [][2]string {
	pushback := "-1" // a client must not retry by itself
	if t.retryAfter > 0 && t.retryAfter <= mostPushback {
		pushback = strconv.FormatInt(t.retryAfter*1000, 10)
	}
	return [][2]string{
		{grpcStatus, strconv.Itoa(int(t.grpcCode()))},
		{grpcMessage, percentEncoded(t.summary() + ". " + t.action())},
		{grpcPushback, pushback},
	}
}

// writeGRPC writes a status of gRPC as an answer that has only trailers, which are in the header then.
func (t *told) writeGRPC(w http.ResponseWriter, r *http.Request) error {
	header := w.Header()
	header.Set(fieldContentType, mediaType(r.Header.Get(fieldContentType)))
	for _, one := range t.grpcTrailers() {
		header.Set(one[0], one[1])
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// grpcWebTrailers is the flag of a frame of gRPC-Web whose content are trailers.
const grpcWebTrailers = 0x80

// writeGRPCWeb writes a status of gRPC-Web: a frame of the body, which scripts of other origins can read without
// further permission.
func (t *told) writeGRPCWeb(w http.ResponseWriter, r *http.Request, form answerForm) error {
	frame := []byte{grpcWebTrailers, 0, 0, 0, 0}
	for _, one := range t.grpcTrailers() {
		frame = fmt.Appendf(frame, "%s: %s\r\n", strings.ToLower(one[0]), one[1])
	}
	binary.BigEndian.PutUint32(frame[1:], uint32(len(frame)-5)) //nolint:gosec // a few hundred bytes
	if form == grpcWebTextForm {
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
