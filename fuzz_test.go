package caddyratelimit_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit"
	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// FuzzCaddyfile: no block of a zone makes the parser panic, and what it adapts is JSON that can be read.
func FuzzCaddyfile(f *testing.F) {
	for _, c := range caddytest.ConfigCases(f, "") {
		if c.Kind == "zone" {
			f.Add(strings.ReplaceAll(c.Text, "; ", "\n"))
		}
	}
	f.Add("key {client_ip}\nrate 10/1m\nban 1m after 3 refusals in 1m\ncharge {\njson a*4\nbroken_off counted\n}\nplan {header.A} {\na 1/1s\nb {\nevents {header.B} 5\n}\ndefault a\n}")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "import") { // of files
			return
		}
		adapted, _, err := caddytest.Adapt(":80 {\nrate_limit {\nzone z {\n" + text + "\n}\n}\n}\n")
		if err != nil {
			return
		}
		var all any
		if err := json.Unmarshal(adapted, &all); err != nil {
			t.Fatal(err)
		}
		eachHandler(all, func(handler map[string]any) {
			delete(handler, "handler")
			written, err := json.Marshal(handler)
			if err == nil {
				err = json.Unmarshal(written, new(caddyratelimit.Handler))
			}
			if err != nil {
				t.Errorf("%s: %v", written, err)
			}
		})
	})
}

// FuzzZoneJSON: a zone that can be read is written as JSON that is read as the same zone.
func FuzzZoneJSON(f *testing.F) {
	for _, c := range caddytest.ConfigCases(f, "") {
		if c.Kind == "json zone" {
			f.Add("{" + c.Text + "}")
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		z, again := new(config.Zone), new(config.Zone)
		if json.Unmarshal([]byte(text), z) != nil {
			return
		}
		written, err := json.Marshal(z)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if err := json.Unmarshal(written, again); err != nil {
			t.Fatalf("%s is written as %s: %v", text, written, err)
		}
		if twice, err := json.Marshal(again); err != nil || string(twice) != string(written) {
			t.Errorf("%s is written as\n%s and then as\n%s: %v", text, written, twice, err)
		}
		_, _ = readZone(written)
	})
}
