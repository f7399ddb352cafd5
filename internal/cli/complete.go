package cli

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
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

// completeKeys completes the first argument with the names of zones, and the next ones with the parts
// of recent keys.
func completeKeys(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return completeZones(cmd, args, begun)
	}
	return complete(cmd, func(e *endpoint) []string { return e.nextParts(args[0], args[1:]) })
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

// maxKeysOffered bounds the keys that a completion offers.
const maxKeysOffered = 100

// nextParts returns the next part of the recent keys that begin with these parts.
func (e *endpoint) nextParts(zone string, before []string) (next []string) {
	var top adminapi.Top
	if _, err := e.read(zonePath(zone, "/top"), url.Values{"n": {strconv.Itoa(maxKeysOffered)}}, &top); err != nil {
		return nil
	}
	for _, k := range top.Keys {
		parts := k.Parts
		if parts == nil {
			parts = []string{k.Key}
		}
		if k.KeyBase64 != "" || k.Truncated > 0 || len(parts) <= len(before) || !slices.Equal(parts[:len(before)], before) {
			continue
		}
		part := parts[len(before)]
		if part != "" && !strings.ContainsAny(part, "\t\n\r") && !slices.Contains(next, part) { // a tab begins a description
			next = append(next, part)
		}
	}
	return next
}
