package main

import (
	"fmt"
	"strings"
)

// keyHeader names the client. The load generator sends it to every instance, also to those that
// ignore it.
const keyHeader = "X-Key"

// lent is a site like limited that lends.
func lent(events int, store string) string {
	return strings.Replace(limited(events, store), "window 24h", "window 24h\n\t\t\tlend", 1)
}

// managed is a site like lent whose operators can do all that they can in a zone that lends.
func managed(events int, store string) string {
	return strings.Replace(lent(events, store), "lend", "lend\n\t\t\toverrides\n\t\t\tban 10m after 50 refusals in 1m\n\t\t\tenforce 100", 1)
}

// limited is a site with the directive in front of the same answer.
func limited(events int, store string) string {
	return fmt.Sprintf(`	rate_limit {
		zone clients {
			key {http.request.header.%s}
			algorithm token_bucket
			events %d
			window 24h
		}
		%s
	}
	respond "Hello, World!"`, keyHeader, events, store)
}

// redisStore has a long timeout, because here the machine is busy on purpose.
func redisStore(address string) string {
	return "store redis {\n\t\t\taddress " + address + "\n\t\t\ttimeout 3s\n\t\t}"
}

const (
	memoryStore = "store memory"
	bareSite    = `	respond "Hello, World!"`
	bareRefusal = "\trespond 429"
)
