package cli_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// TestWrongArguments: what cannot be asked is an error that says what is wrong, and what to write.
func TestWrongArguments(t *testing.T) {
	dir := startSite(t)
	asks(t, dir, "ann", "/", 1)
	for args, want := range map[string]string{
		"get none a":                      "no zone",
		"get seets ann":                   `its zones are "api-by-customer", "logins", "seats", "uploads"; did you mean "seats"?`,
		"get uploads":                     "the key is missing",
		"get":                             "the key is missing: write '",
		"get logins ann":                  "the key is {header.User} {path}: give each part",
		"get uploads a --key-base64 YQ==": "not both",
		"get uploads " + strings.Repeat("x", 99_999): "longer than the admin endpoint takes",
		"set uploads":                     "the limit is missing",
		"set uploads k":                   "(the last argument, k, is the limit)",
		"set uploads 5":                   "the key is missing",
		"set uploads a --exempt --clear":  "[clear exempt] were all set",
		"set uploads a --clear --for 1h":  "[clear for] were all set",
		"set logins a /x 5/1m":            "does not allow overrides: add the option overrides",
		"ban uploads a --for never":       `invalid argument "never" for "--for" flag: write a duration such as 90s, 2h or 7d`,
		"ban uploads a --for 1ms":         "must be at least 1s",
		"unban":                           "the zone is missing: write rate-limit unban <zone> [<key>...]",
		"reset logins a /b c":             "give each part, got 3",
		"top --refused --networks":        "were all set",
		"watch --outcome bad":             "must be one of",
		"shake":                           `unknown command "shake": the commands are ban, `,
		"gte":                             `unknown command "gte": did you mean get`,
		"zones --address 127.0.0.1:1":     "is Caddy running",
		"explain http://a/ --address a,b": "explain asks one instance: give one --address, got 2",
		"explain --offline http://a/ X:y": "explain takes at most 1 argument, got 2: quote those with spaces",
		"replay --html access.log a":      "--html replaces the file access.log: write a name that ends in .html",
		"explain --offline":               "the URL is missing: write rate-limit explain <URL>",
	} {
		words := strings.Fields(args)
		if !strings.Contains(args, "--address") && !strings.Contains(args, "--offline") && !strings.HasPrefix(args, "replay") {
			words = append(words, "--address", "unix/"+dir+"/admin")
		}
		var output bytes.Buffer
		if err := command(&output, words...).Execute(); err == nil || !strings.Contains(output.String()+err.Error(), want) {
			t.Errorf("%.100s: %v, want %q in\n%s", args, err, want, output.String())
		}
	}
}

// TestExitCodesOfDoctor: the exit code is 0, 2 if something fails, 3 for a warning if that is wanted, and 1 if there is no Caddy
// to check, of which doctor does not say that nothing is wrong.
func TestExitCodesOfDoctor(t *testing.T) {
	dir := startSite(t)
	asks(t, dir, "ann", "/", 100) // all have the same key
	answering := func(text string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }))
		t.Cleanup(s.Close)
		return s.Listener.Addr().String()
	}
	for args, want := range map[string]int64{
		"": 0, "--strict": 3, "--strict --address unix/" + dir + "/nobody": 1, "--address " + answering("{}"): 1,
		"--address " + answering(`{"level": "fail"}`): 2,
	} {
		words := append([]string{"doctor", "--address", "unix/" + dir + "/admin"}, strings.Fields(args)...)
		var output bytes.Buffer
		if got := exitCode(command(&output, words...).Execute()); got != want {
			t.Errorf("doctor %s: exit code %d, want %d\n%s", args, got, want, output.String())
		}
		if want == 1 && strings.Contains(output.String(), "Nothing is wrong") {
			t.Errorf("doctor %s:\n%s", args, output.String())
		}
	}
}

// TestCompletion: a shell that has loaded the completions gets commands and flags.
func TestCompletion(t *testing.T) {
	for args, want := range map[string][]string{
		"_":                    {"ban", "get", "overrides", "reset", "set", "stores", "top", "unban", "watch", "zones"},
		"set --":               {"--clear", "--exempt", "--for"},
		"watch --outcome bann": {"banned"},
	} {
		words := strings.Fields(args)
		for i := range words {
			words[i] = strings.TrimPrefix(words[i], "_")
		}
		var output bytes.Buffer
		err := command(&output, append([]string{"__complete"}, words...)...).Execute()
		for _, w := range want {
			if err != nil || !regexp.MustCompile("(?m)^"+w+"(\t|$)").MatchString(output.String()) {
				t.Errorf("completing %q: %v, want %q in\n%s", args, err, w, output.String())
			}
		}
	}
}
