package cli

import (
	"fmt"

	"github.com/caddyserver/caddy/v2"
)

// offline returns the admin API as what a command needs that asks no running Caddy. It is a module of Caddy, which this
// package does not import.
func offline[T any]() (needed T, err error) {
	module, err := caddy.GetModule("admin.api.rate_limit")
	if err != nil {
		return needed, err
	}
	needed, ok := module.New().(T)
	if !ok {
		return needed, fmt.Errorf("module %s cannot do this without a running Caddy", module.ID)
	}
	return needed, nil
}
