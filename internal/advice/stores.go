package advice

// What to do about stores, which both the log and doctor say.
var (
	NearerStore = New("doctor/round_trip", "use a nearer server, or raise timeout to three times the round trip")
	NoEviction  = New("doctor/eviction", "set maxmemory-policy noeviction")
	RaiseKeys   = New("doctor/max_keys", "raise max_keys, or look with 'caddy rate-limit top' who sends so many keys")
)
