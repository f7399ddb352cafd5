// Package integration_test runs real Caddy processes with this module in front of real Redis
// processes, and sends them requests over HTTP as any client would.
//
// Each process belongs to one test and ends with it. All traffic stays on 127.0.0.1.
package integration_test
