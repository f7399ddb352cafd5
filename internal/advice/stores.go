package advice

// Docs is where the documentation is.
const Docs = "https://github.com/seed-161337e5/caddyratelimit/blob/main/docs/"

// What to do about stores, which both the log and doctor say.
var (
	NearerStore = New("doctor/round_trip", "use a nearer server, or raise timeout to three times the round trip")
	NoEviction  = New("doctor/eviction", "set maxmemory-policy noeviction")
	RaiseKeys   = New("doctor/max_keys", "raise max_keys, or look with 'caddy rate-limit top' who sends so many keys")
)

// What to do about a server that is another one than the config says.
var (
	UseCluster   = New("doctor/server/cluster", "write mode cluster, without db: this is a node of a Cluster")
	LeaveCluster = New("doctor/server/single", "leave mode cluster out: this Redis is in no Cluster")
	UseSentinel  = New("doctor/server/sentinel", "write mode sentinel and master_name if this is a Sentinel; else use a server that has this command")
	NoSentinel   = New("doctor/server/sentinel/none", "write the addresses of the Sentinels, whose port is mostly 26379, or leave mode sentinel and master_name out")
	NameMaster   = New("doctor/server/master", "set master_name to a name that 'SENTINEL MASTERS' lists")
	UseDB        = New("doctor/server/db", "set db to a number below the option databases of the server, which is mostly 16")
	GiveRights   = New("doctor/rights", "give the user the rights that "+Docs+"redis.md lists, among them %s")
	GiveKeys     = New("doctor/rights/keys", "give the user the rights that "+Docs+"redis.md lists, for keys that begin with the key_prefix")
	GiveDB       = New("doctor/rights/db", "give the user the right to this database, or set another db")
	FindSentinel = New("doctor/login/sentinel", "correct sentinel_username and sentinel_password, and give that user the rights that "+Docs+"redis.md lists")
	NameHosts    = New("doctor/server/host", "set cluster-preferred-endpoint-type ip at all nodes, or cluster-announce-hostname")
	NamePorts    = New("doctor/server/port", "set tls-cluster yes at all nodes if clients use TLS, or cluster-announce-port")
)
