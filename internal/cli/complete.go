package cli

import (
	"net/http"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// maxCompletion bounds how long a shell waits for names.
const maxCompletion = 2 * time.Second

// complete returns what find finds, if it does so soon.
func complete(cmd *cobra.Command, find func(*endpoint) []string) ([]string, cobra.ShellCompDirective) {
	found := make(chan []string, 1)
	go func() {
		all, err := newFleets(cmd)
		if err != nil {
			found <- nil
			return
		}
		var names []string
		for _, f := range all {
			f.json = false
			names = append(names, find(f.asked)...)
		}
		slices.Sort(names)
		found <- slices.Compact(names)
	}()
	select {
	case names := <-found:
		return names, cobra.ShellCompDirectiveNoFileComp
	case <-time.After(maxCompletion):
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeZones completes the first argument with the names of zones.
func completeZones(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return complete(cmd, func(e *endpoint) []string {
		names, _ := e.zoneNames()
		return names
	})
}

// completePlans completes a flag with the plans of the zone, or of all zones if none is named yet.
func completePlans(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return complete(cmd, func(e *endpoint) (names []string) {
		var zones []adminapi.Zone
		if _, err := e.read("zones", nil, &zones); err != nil {
			return nil
		}
		for _, z := range zones {
			if len(args) == 0 || z.Name == args[0] {
				names = append(names, z.Plans...)
			}
		}
		slices.Sort(names)
		return slices.Compact(names)
	})
}

func (e *endpoint) zoneNames() (names []string, err error) {
	var zones []adminapi.Zone
	if _, err := e.fetch(http.MethodGet, "zones", nil, nil, &zones); err != nil {
		return nil, err
	}
	for _, z := range zones {
		names = append(names, z.Name)
	}
	return names, nil
}
