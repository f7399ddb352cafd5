package cli_test

import (
	"strings"
	"testing"
)

// customers is a config in which plans depend on a map.
const customers = `:8080 {
	map {header.X-Api-Key} {plan} {
		alice standard
		bob   paid
		carol paid
	}
	rate_limit {
		on_limit problem
		zone api {
			key {header.X-Api-Key}
			missing_key reject
			plan {plan} {
				standard 60/1m
				paid 600/1m
				default reject 403
			}
			overrides
		}
	}
	respond ok
}
`

// TestBreaks: a mistake in a config of customers is named by diff, which ends with 2, or makes a case fail. Nothing of the
// map, the routes or the order is overlooked; a change behind the limits is none.
func TestBreaks(t *testing.T) {
	const cases = "case ban {\n\tban api alice\n\tGET / header X-Api-Key alice by api\n}\n"
	for name, c := range map[string]struct{ was, is, diff string }{
		"more for all":      {"60/1m", "600/1m", "plan plans standard max_events now 600, was 60"},
		"an hour":           {"standard 60/1m", "standard 60/1h", "plan plans standard window now 1h, was 1m"},
		"dry run":           {"overrides", "overrides\nenforce 0", "enforce now 0"},
		"exempt":            {"overrides", "overrides\nexempt client_ip private_ranges", "exempt now"},
		"default":           {"default reject 403", "default standard", "plan default now standard, was reject"},
		"key":               {"key {header.X-Api-Key}", "key {client_ip}", "key now {client_ip}"},
		"missing key":       {"missing_key reject", "missing_key skip", "missing_key now"},
		"misspelled plan":   {"bob   paid", "bob   payd", "server srv0 routes 1 handle 1 (map)"},
		"customer gone":     {"carol paid", "", "server srv0 routes 1 handle 1 (map)"},
		"some paths":        {"rate_limit {", "rate_limit /v1/* {", "server srv0 routes"},
		"order":             {":8080", "{\norder rate_limit last\n}\n:8080", "server srv0 routes"},
		"a route before it": {"respond ok", "handle /v2/* {\nrespond ok\n}\nrespond ok", "server srv0 routes"},
		"another answer":    {"on_limit problem", "", "(rate_limit)"},
		"limit gone":        {customers, ":8080 {\nrespond ok\n}\n", "gone"},
		"overrides gone":    {"overrides\n", "\n", "no overrides any longer"},
		"certificates":      {":8080 {", ":8080 {\ntls {\nclient_auth {\nmode require\n}\n}", "server srv0 tls_connection_policies"},
		"protocols":         {":8080", "{\nservers {\nprotocols h1\n}\n}\n:8080", "server srv0 protocols"},
		"behind it":         {"respond ok", "respond okay", ""},
	} {
		here(t, map[string]string{"old": customers, "new": strings.Replace(customers, c.was, c.is, 1), "new.test": cases})
		output, code := offline(t, "", "diff", "--exit-code", "old", "new")
		if want := map[bool]int64{true: 2, false: 0}[c.diff != ""]; code != want || !strings.Contains(output, c.diff) {
			t.Errorf("%s: diff ends with %d, want %d with %q:\n%s", name, code, want, c.diff, output)
		}
		if strings.Contains(output, "No zone differs.") != (name == "behind it") {
			t.Errorf("%s: diff says\n%s", name, output)
		}
		if _, code := offline(t, "", "test", "new.test"); name == "overrides gone" && code != 2 {
			t.Errorf("%s: test ends with %d", name, code)
		}
	}
}

// TestDiffOfErrorRoutes: which requests come to error routes depends on the handlers, also where a named route limits them.
func TestDiffOfErrorRoutes(t *testing.T) {
	const config = "&(lim) {\nrate_limit {\nzone n {\nkey {client_ip}\nrate 5/1m\n}\n}\n}\n" +
		":8080 {\nfile_server {\nroot /a\n}\nhandle_errors {\ninvoke lim\n}\n}\n"
	here(t, map[string]string{"old": config, "new": strings.Replace(config, "/a", "/b", 1)})
	if output, code := offline(t, "", "diff", "--exit-code", "old", "new"); code != 2 || !strings.Contains(output, "(file_server) root") {
		t.Errorf("diff ends with %d, want 2:\n%s", code, output)
	}
}

// TestDiffOfAnotherLog: what a log cannot tell is said, so that nobody takes it for no difference.
func TestDiffOfAnotherLog(t *testing.T) {
	const line = "203.0.113.7 - - [20/Nov/2026:14:03:07 +0000] \"GET / HTTP/1.1\" 200 12 \"-\" \"curl\"\n"
	here(t, map[string]string{"old": customers, "new": strings.Replace(customers, "60/1m", "1/1m", 1), "log": line + line + "nonsense\n"})
	output, _ := offline(t, "", "diff", "old", "new", "log")
	output = strings.Join(strings.Fields(output), " ")
	for _, want := range []string{
		"Not known from the logs:", "- zone api is not judged: header X-Api-Key, which its key needs, is not in the log (2 requests)",
		"- 1 of 3 lines, which are not understood, such as log:3: the line is cut or malformed: nonsense",
	} {
		if !strings.Contains(output, want) {
			t.Errorf("%q is not in\n%s", want, output)
		}
	}
}
