//go:build deep

package faults_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestFaultsOfSentinel kills the master. Service is normal when there is another one.
func TestFaultsOfSentinel(t *testing.T) {
	patient.BesideOthers(t)
	g := redistest.StartSentinel(t, nil, nil)
	f := startFaultFleet(t, "mode sentinel\n master_name "+redistest.MasterName+"\n address "+strings.Join(g.Addrs(), " "))
	var dead *redistest.Server
	f.sufferAll(t, []fault{{
		name: "sentinel failover", lost: faultLimit,
		begin: func(*testing.T) { dead = g.Master(); dead.Kill() },
		end:   func(*testing.T) time.Time { g.AwaitSwitch(dead); return time.Now() },
	}})
}

// TestFaultsOfCluster moves the slot in use, and kills the node that has it.
func TestFaultsOfCluster(t *testing.T) {
	patient.BesideOthers(t)
	const resharding, failover = "resharding", "cluster failover"
	redisCluster := redistest.StartCluster(t, 3, 1)
	f := startFaultFleet(t, "mode cluster\n address "+strings.Join(redisCluster.Addrs()[:3], " "))
	key := func(name string) string { return "rl:{" + faultKey(name) + "}:deny:fixed_window.4:1h-first_request" }
	var move *redistest.Migration
	f.sufferAll(t, []fault{
		{
			name: resharding, answers: true,
			begin: func(*testing.T) {
				from, to := redisCluster.MasterOf(key(resharding)), redisCluster.Nodes()[0]
				if from == to {
					to = redisCluster.Nodes()[1]
				}
				move = redisCluster.StartMove(redisCluster.SlotOf(key(resharding)), from, to)
			},
			end: func(*testing.T) time.Time { move.Finish(); return time.Now() },
		},
		{
			name: failover, lost: faultLimit,
			begin: func(*testing.T) { redisCluster.MasterOf(key(failover)).Kill() },
			end:   func(*testing.T) time.Time { redisCluster.MasterOf(key(failover)); return time.Now() },
		},
	})
}
