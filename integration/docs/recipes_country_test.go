package docs_test

// signUps come through a CDN at 127.0.0.9, which says where its clients are, and around it. An address
// may sign up 5 times, a network 6 times, and a country 8 times.
var signUps = []ask{
	through("203.0.113.1", "NO", "64500", "200*5 429"),
	through("203.0.113.2", "NO", "64500", "200 429"),
	through("203.0.113.3", "NO", "64501", "200*2 429"),
	through("203.0.113.4", "SE", "64502", "200*5 429"),
	// What clients say themselves is not believed: these are of one network, and it is not that of the first ones.
	{path: "/signup", from: "127.0.0.2", header: []string{"CF-Connecting-IP", "203.0.113.9", "CF-IPCountry", "NO", "X-Client-ASN", "64500"}, want: "200*5 429"},
	{path: "/signup", from: "127.0.0.3", header: []string{"CF-IPCountry", "FI", "X-Client-ASN", "64503"}, want: "200 429"},
}

// through is a sign-up through the CDN.
func through(address, country, network, want string) ask {
	return ask{path: "/signup", from: "127.0.0.9", want: want, header: []string{
		"CF-Connecting-IP", address, "CF-IPCountry", country, "X-Client-ASN", network,
	}}
}
