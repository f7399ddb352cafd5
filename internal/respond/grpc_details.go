package respond

import "encoding/binary"

// The names of the messages in the details of a status, by google/rpc/error_details.proto.
const (
	retryInfoType    = "type.googleapis.com/google.rpc.RetryInfo"
	quotaFailureType = "type.googleapis.com/google.rpc.QuotaFailure"
)

// grpcStatusMessage returns the google.rpc.Status of a refusal as Protocol Buffers have it. A RetryInfo tells the whole
// wait. A QuotaFailure names the zones whose limits refuse.
func (t *told) grpcStatusMessage(message string) []byte {
	status := appendNumber(nil, 1, uint64(t.grpcCode()))
	status = appendText(status, 2, message)
	if t.retryAfter > 0 {
		delay := appendNumber(nil, 1, uint64(t.retryAfter)) //nolint:gosec // not negative
		status = appendAny(status, retryInfoType, appendText(nil, 1, string(delay)))
	}
	if len(t.policies) == 0 {
		return status
	}
	var failure []byte
	for _, name := range t.policies {
		violation := appendText(nil, 1, "zone:"+name)
		violation = appendText(violation, 2, t.summary())
		failure = appendText(failure, 1, string(violation))
	}
	return appendAny(status, quotaFailureType, failure)
}

// appendAny appends the field details of a status.
func appendAny(b []byte, name string, value []byte) []byte {
	return appendText(b, 3, string(appendText(appendText(nil, 1, name), 2, string(value))))
}

// The types of a field on the wire, by https://protobuf.dev/programming-guides/encoding.
const (
	wireVarint = 0
	wireBytes  = 2
)

func appendNumber(b []byte, field int, value uint64) []byte {
	return binary.AppendUvarint(append(b, byte(field<<3|wireVarint)), value)
}

func appendText(b []byte, field int, value string) []byte {
	b = binary.AppendUvarint(append(b, byte(field<<3|wireBytes)), uint64(len(value)))
	return append(b, value...)
}
