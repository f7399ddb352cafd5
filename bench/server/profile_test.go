package main

import (
	"testing"

	"github.com/google/pprof/profile"
)

func TestSharesOf(t *testing.T) {
	const ours = "github.com/seed-161337e5/caddyratelimit"
	sample := func(value int64, stack ...string) *profile.Sample {
		s := &profile.Sample{Value: []int64{1, value}}
		for _, name := range stack {
			s.Location = append(s.Location, &profile.Location{Line: []profile.Line{{Function: &profile.Function{Name: name}}}})
		}
		return s
	}
	got := sharesOf(&profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples"}, {Type: "cpu"}},
		Sample: []*profile.Sample{
			sample(20, "runtime.mallocgc", ours+"/internal/respond.recordOf", ours+".(*Handler).ServeHTTP", "net/http.(*conn).serve"),
			sample(10, "net/http.Header.Set", ours+".(*Handler).ServeHTTP", "net/http.(*conn).serve"),
			// The handler behind, what writes the answer, and the server itself.
			sample(20, "fmt.Sprint", "github.com/caddyserver/caddy/v2/modules/caddyhttp.StaticResponse.ServeHTTP", ours+".(*Handler).ServeHTTP"),
			sample(10, "github.com/caddyserver/caddy/v2/modules/caddyhttp.HandlerFunc.ServeHTTP", ours+".(*Handler).ServeHTTP"),
			sample(15, "syscall.write", "net/http.(*response).Write", ours+"/internal/respond.(*headerWriter).Write", ours+".(*Handler).ServeHTTP"),
			sample(2, "runtime.memmove", "net/http.(*conn).serve"),
			sample(3, "runtime.copystack", "runtime.newstack", ours+"/store.(*Rule).At", ours+".(*Handler).ServeHTTP"),
			sample(20, "runtime.scanobject", "runtime.gcBgMarkWorker"),
		},
	})
	want := map[string]float64{"internal/respond.recordOf": 0.2, "(*Handler).ServeHTTP": 0.1}
	if got.collector != 0.2 || got.stacks != 0.03 || got.ours < 0.299 || got.ours > 0.301 || len(got.byFunction) != len(want) {
		t.Errorf("got %+v", got)
	}
	for name, share := range want {
		if got.byFunction[name] != share {
			t.Errorf("%s: got %v, want %v", name, got.byFunction[name], share)
		}
	}
}
