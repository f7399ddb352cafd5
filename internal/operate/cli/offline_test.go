package cli_test

import (
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// restless is a config whose modules send, listen or write while they are set up. LISTENER is an address, and DIR a
// folder.
const restless = `{
	storage file_system DIR/storage
	log {
		output net LISTENER
	}
	log files {
		output file DIR/all.log
	}
	metrics {
		otlp
	}
	pki {
		ca other {
			name "Other"
		}
	}
	rate_limit {
		store redis {
			address LISTENER
		}
	}
}
http://localhost:80 {
	tracing
	acme_server /acme/* {
		ca other
	}
	forward_auth /private/* LISTENER {
		uri /auth
		copy_headers X-User
		health_uri /up
	}
	rate_limit {
		zone clients {
			key {client_ip}
			rate 5/1m
			algorithm token_bucket
		}
	}
	php_fastcgi /php/* LISTENER {
		health_uri /up
	}
	reverse_proxy LISTENER {
		health_uri /up
		health_interval 1s
	}
}
`

// TestOfflineHasNoEffects: commands that read a config, and ask no running Caddy, start nothing that the config would:
// nothing arrives at its upstreams, stores and collectors, nothing is written, and no goroutine stays.
func TestOfflineHasNoEffects(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	arrived := acceptAll(listener)
	dir, data := t.TempDir(), t.TempDir()
	t.Setenv("XDG_DATA_HOME", data)
	t.Setenv("TMPDIR", data)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+listener.Addr().String())
	write := func(name, text string) string {
		text = strings.NewReplacer("LISTENER", listener.Addr().String(), "DIR", dir).Replace(text)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	config := write("Caddyfile", restless)
	other := write("Caddyfile.other", strings.Replace(restless, "5/1m", "6/1m", 1))
	cases := write("Caddyfile.test", "url http://localhost\ncase five {\n\tGET / repeat 6 every 0s pass 5\n}\n")
	log := write("access.log", `{"ts":1795500000,"request":{"remote_ip":"192.0.2.1","client_ip":"192.0.2.1","proto":"HTTP/1.1","method":"GET",`+
		`"host":"localhost","uri":"/","headers":{}},"duration":0.1,"status":200}`+"\n")
	files, before := list(t, dir, data), goroutines()
	for want, args := range map[string][]string{
		"1 case, 0 failed":                    {"test", "--config", config, cases},
		"changes of the config, 3 noticed":    {"test", "--mutate", "--config", config, cases},
		"No request would have been refused.": {"replay", "--config", config, "--suggest", "--try", "clients=9/1m", log},
		"max_events now 6, was 5":             {"diff", config, other},
		"1 request by 1 client":               {"diff", config, other, log},
		"allowed":                             {"explain", "--offline", "--config", config, "http://localhost/"},
	} {
		t.Run(strings.Join(args[:2], " "), func(t *testing.T) {
			var output bytes.Buffer
			if err := command(&output, args...).ExecuteContext(t.Context()); !strings.Contains(output.String(), want) {
				t.Errorf("%v; not %q:\n%s", err, want, output.String())
			}
			patient.UntilEqual(t, "goroutines of the command", func() string { return more(before, goroutines()) }, "")
			if now := list(t, dir, data); now != files {
				t.Errorf("there are the files\n%s\nbefore, there were\n%s", now, files)
			}
		})
	}
	_ = listener.Close()
	if all := <-arrived; all != "" {
		t.Errorf("there arrived\n%s", all)
	}
}

// acceptAll accepts connections until a listener is closed, and then returns how each has begun.
func acceptAll(listener net.Listener) <-chan string {
	arrived := make(chan string, 1)
	go func() {
		var all strings.Builder
		for {
			c, err := listener.Accept()
			if err != nil {
				arrived <- all.String()
				return
			}
			begin := make([]byte, 100)
			_ = c.SetReadDeadline(time.Now().Add(time.Second))
			n, _ := io.ReadAtLeast(c, begin, 1)
			all.Write(append(begin[:n], '\n'))
			_ = c.Close()
		}
	}()
	return arrived
}

// list returns the names of all files in some folders.
func list(t *testing.T, folders ...string) string {
	t.Helper()
	var names []string
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(name string, _ os.DirEntry, err error) error {
			names = append(names, name)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return strings.Join(names, "\n")
}

// starters finds the function that has started a goroutine in the text of its stack.
var starters = regexp.MustCompile(`(?m)^created by (\S+)`)

// goroutines counts the goroutines of this process by the function that has started them.
func goroutines() map[string]int {
	text := make([]byte, 1<<20)
	all := make(map[string]int)
	for _, match := range starters.FindAllSubmatch(text[:runtime.Stack(text, true)], -1) {
		all[string(match[1])]++
	}
	delete(all, "testing.(*T).Run")
	return all
}

// more returns what there are more of now than before.
func more(before, now map[string]int) string {
	var all []string
	for name, n := range now {
		if n > before[name] {
			all = append(all, name)
		}
	}
	return strings.Join(all, ", ")
}
