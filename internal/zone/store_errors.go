package zone

// The values of on_store_error.
const (
	AllowOnError = "allow"
	DenyOnError  = "deny"
	LocalOnError = "local"
)
