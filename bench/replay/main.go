// Command replay measures caddy rate-limit replay on one core: logs of one, two and four million lines, and
// beside it jq, which does no more than to find one number in each line.
package main

import (
	"bufio"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	if err := measure(); err != nil {
		fmt.Fprintln(os.Stderr, "bench-replay:", err)
		os.Exit(1)
	}
}

const config = `example.com {
	rate_limit {
		zone clients {
			key {client_ip}
			rate 100/1m
		}
	}
	reverse_proxy localhost:9000
}
`

func measure() (err error) {
	lines := flag.Int("lines", 1_000_000, "the lines of the smallest log")
	root := flag.String("root", "..", "the root of this repository")
	flag.Parse()
	if *lines < 1000 {
		return fmt.Errorf("lines must be at least 1000, got %d", *lines)
	}
	dir, err := os.MkdirTemp("", "bench-replay-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := func(name string) string { return filepath.Join(dir, name) }
	build := exec.Command("go", "build", "-o", file("caddy"), "./cmd/caddy")
	build.Dir, build.Stderr = *root, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("building Caddy: %w", err)
	}
	sample, err := readSample(filepath.Join(*root, "testdata/replay/access.log.gz"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(file("Caddyfile"), []byte(config), 0o600); err != nil {
		return err
	}
	fmt.Printf("%-10s %10s %10s %14s %10s %12s %8s\n", "lines", "size", "replay", "each line", "memory", "jq -c .ts", "ratio")
	for _, n := range []int{*lines, 2 * *lines, 4 * *lines} {
		if err := compare(file, sample, n); err != nil {
			return err
		}
	}
	return nil
}

// readSample reads the lines of a log.
func readSample(path string) (lines []string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(unpacked)
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), err
}

// write writes n lines of a sample, which comes again and again: each time a day later, and of other people.
func write(path string, sample []string, n int) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	buffer := bufio.NewWriter(out)
	for i := range n {
		const before = `{"level":"info","ts":`
		day := i / len(sample)
		at, rest, _ := strings.Cut(strings.TrimPrefix(sample[i%len(sample)], before), ",")
		seconds, _ := strconv.ParseFloat(at, 64)
		rest = strings.ReplaceAll(rest, `"198.51.0.`, fmt.Sprintf(`"198.51.%d.`, day%250))
		fmt.Fprintf(buffer, "%s%.7f,%s\n", before, seconds+float64(86400*day), rest)
	}
	return errors.Join(buffer.Flush(), out.Close())
}

// compare measures a log of n lines.
func compare(file func(string) string, sample []string, n int) error {
	log := file("access.log")
	if err := write(log, sample, n); err != nil {
		return fmt.Errorf("writing the log: %w", err)
	}
	info, err := os.Stat(log)
	if err != nil {
		return err
	}
	ours, memory, err := run(file("caddy"), "rate-limit", "replay", "--config", file("Caddyfile"), log)
	if err != nil {
		return err
	}
	theirs, ratio := "not found", ""
	if jq, err := exec.LookPath("jq"); err == nil {
		took, _, err := run(jq, "-c", ".ts", log)
		if err != nil {
			return err
		}
		theirs, ratio = fmt.Sprintf("%.2f s", took.Seconds()), fmt.Sprintf("%.1f", took.Seconds()/ours.Seconds())
	}
	fmt.Printf("%-10d %7d MB %8.2f s %11.2f µs %7d MB %12s %8s\n",
		n, info.Size()/1_000_000, ours.Seconds(), float64(ours.Microseconds())/float64(n), memory/1_000_000, theirs, ratio)
	return nil
}

// run returns the time on processors that a command takes, and its memory in bytes. With one processor
// for Go, that is the time on one core.
func run(path string, args ...string) (took time.Duration, memory int64, err error) {
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	if err := cmd.Run(); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0, 0, errors.New("this system does not say what a process has used")
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), usage.Maxrss << 10, nil
}
