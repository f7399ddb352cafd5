package admin

import (
	"fmt"
	"os"
)

// processName names this process for people.
func processName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "a host without a name"
	}
	return fmt.Sprintf("%s (process %d)", host, os.Getpid())
}

// definition returns the limit and the key of the zone for people. Instances that share a store must agree on these, so it differs
// for different ones.
func (z *runningZone) definition() string {
	text := z.Description
	if z.Key != "" {
		text += " by " + z.Template.Form()
	}
	if p := z.Template.Prefixes; z.Template.HasAddress && (p.IPv4 != 32 || p.IPv6 != 64) {
		text += fmt.Sprintf(" (ipv4_prefix %d, ipv6_prefix %d)", p.IPv4, p.IPv6)
	}
	return text
}
