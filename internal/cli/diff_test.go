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
			{Zone: "api", Kind: adminapi.ZoneChanged, Counts: adminapi.CountsAnew, Stricter: true, Changes: []adminapi.OptionDiff{
				{Text: "key now {header.X-User}, was {client_ip}"},
				{Text: "limit lowered from sliding_window_log 100/1m to sliding_window_log 60/1m"},
			}, Warnings: []string{"key: any client can choose header X-User"}},
			{Zone: "old", Kind: adminapi.ZoneGone, Was: "fixed_window 5/1h"},
			{Zone: "x`y", Kind: adminapi.ZoneNew, Is: "fixed_window 5/1h by {client_ip}"},
		},
		Stores: true,
		Log: &adminapi.LogDiff{
			Requests: 30, Clients: 2, Was: 1, Is: 4, More: 1,
			MoreOf: []adminapi.ClientDiff{{Client: "192.0.2.1|<b>", Requests: 20, Was: 1, Is: 4}},
		},
	}
	const terminal = `zone     api
changed  key now {header.X-User}, was {client_ip}
changed  limit lowered from sliding_window_log 100/1m to sliding_window_log
         60/1m
warning  key: any client can choose header X-User
refuses  it can refuse requests that passed before
counts   begin again from zero: each client has its whole limit

zone  old
gone  was fixed_window 5/1h

zone  'x` + "`" + `y'
new   fixed_window 5/1h by {client_ip}

The stores differ, so all counts may begin again from zero.

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
