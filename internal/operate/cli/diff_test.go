package cli

import (
	"bytes"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// TestComparison: what differs between two configs, in a terminal of 80 columns.
func TestComparison(t *testing.T) {
	c := &adminapi.Comparison{
		Zones: []adminapi.ZoneDiff{
			{Zone: "api", Kind: adminapi.ZoneChanged, Changes: []adminapi.OptionDiff{
				{Text: "key now {header.X-User}, was {client_ip}"},
				{Text: `exempt now [{"client_ip":{"ranges":["192.0.2.0/24","198.51.100.0/24"]}}]`},
			}, Warnings: []string{"key: any client can choose header X-User"}},
			{Zone: "old", Kind: adminapi.ZoneGone, Was: "fixed_window 5/1h"},
			{Zone: "x`y", Kind: adminapi.ZoneNew, Is: "fixed_window 5/1h by {client_ip}"},
		},
		Unjudged: []string{"server srv0 routes 1 handle 1 (map) mappings 2"},
		Log: &adminapi.LogDiff{
			Requests: 30, Clients: 2, Was: 1, Is: 4, More: 1,
			MoreOf: []adminapi.ClientDiff{{Client: "192.0.2.1|<b>", Requests: 20, Was: 1, Is: 4}},
		},
	}
	const terminal = `zone     api
changed  key now {header.X-User}, was {client_ip}
changed  exempt now
         [{"client_ip":{"ranges":["192.0.2.0/24","198.51.100.0/24"]}}]
warning  key: any client can choose header X-User

zone  old
gone  was fixed_window 5/1h

zone  'x` + "`" + `y'
new   fixed_window 5/1h by {client_ip}

This differs too where requests come to a limit, and may decide which of them it
counts. Test it with cases or a log:
  server srv0 routes 1 handle 1 (map) mappings 2

Of 30 requests by 2 clients, the old config refuses 1 and the new one 4. It
refuses 1 client more often, and 0 clients less often.

CLIENT           REQUESTS  REFUSED BEFORE  REFUSED NOW
'192.0.2.1|<b>'  20        1               4
`
	var b bytes.Buffer
	(&screen{out: &b, width: 80}).printComparison(c)
	if b.String() != terminal {
		t.Errorf("terminal: got\n%s\nwant\n%s", b.String(), terminal)
	}
}
