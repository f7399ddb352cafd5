//go:build deep

package redisstore_test

import (
	"fmt"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
)

func TestClusterWithTLSAndUser(t *testing.T) {
	patient.BesideOthers(t)
	c := redistest.StartCluster(t, 3, 0, redistest.WithTLS(true), redistest.WithArgs("--tls-cluster", "yes"),
		redistest.WithUser("limiter", "s3cret", append(leastACL(t), clusterACL(t)...)...))
	files := c.Nodes()[0].TLS()
	s := open(t, redisstore.Options{
		Mode: redisstore.ModeCluster, Addresses: c.TLSAddrs()[:1], Username: "limiter", Password: "s3cret",
		TLS: &redisstore.TLS{CA: files.CA, Cert: files.Cert, Key: files.Key},
	})
	works(t, s)
	rule := hourly(t)
	for i := range 50 {
		take(t, s, rule, fmt.Sprint(i), 1)
	}

	found := s.Examine(t.Context())
	if len(found.Servers) != 3 {
		t.Errorf("%+v", found)
	}
	for _, c := range found.Servers {
		if c.Trouble != "" || c.Described {
			t.Errorf("%+v", c)
		}
	}
	s.Report("{this one}", func() string { return "{all}" })
	s.Beat()
	if reports, err := s.Look(t.Context(), true); err != nil || len(reports) != 1 || reports[0].Text != "{this one}" {
		t.Errorf("%+v, %v", reports, err)
	}
}
