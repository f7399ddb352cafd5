package zone

// What on_store_error can be.
const (
	AllowOnError = "allow"
	DenyOnError  = "deny"
	LocalOnError = "local"
)
