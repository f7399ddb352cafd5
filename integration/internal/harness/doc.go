// Package harness is what the integration tests share. It runs real Caddy processes with this module, and sends
// them requests over HTTP as any client would.
//
// Each process belongs to one test and ends with it. All traffic stays on 127.0.0.1.
package harness
