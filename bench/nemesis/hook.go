package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// hook is a program that starts, breaks and ends what is measured. It is called with an action and its argument:
//
//	up CASE      starts the servers of a case, and prints their URLs, or nothing if they cannot be had
//	ACTION NAME  does what a fault says, such as kill redis
//	down CASE    ends the servers
//	versions     prints the version of Redis, and the names and versions of everything else
//
// NEMESIS_UPSTREAM is the address to which the limiter sends what it admits.
type hook struct{ program, upstream string }

func (h hook) call(ctx context.Context, arguments ...string) (string, error) {
	cmd := exec.CommandContext(ctx, h.program, arguments...)
	cmd.Env = append(os.Environ(), "NEMESIS_UPSTREAM="+h.upstream)
	cmd.Stderr = os.Stderr
	cmd.WaitDelay = time.Second // servers in the background may keep the output open
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", h.program, strings.Join(arguments, " "), err)
	}
	return string(out), nil
}

// up starts the servers of a case, and returns their URLs: none if they cannot be had here.
func (h hook) up(ctx context.Context, name string) ([]string, error) {
	out, err := h.call(ctx, "up", name)
	return strings.Fields(out), err
}

// fault is an action of the hook at a time of the run.
type fault struct {
	at     time.Duration
	action []string
}

// parseFaults reads faults such as "10s kill redis; 15s start redis".
func parseFaults(text string) (all []fault, err error) {
	for part := range strings.SplitSeq(text, ";") {
		words := strings.Fields(part)
		if len(words) == 0 {
			continue
		}
		at, err := time.ParseDuration(words[0])
		if err != nil || len(words) < 2 {
			return nil, fmt.Errorf("fault %q is not a duration and an action", strings.TrimSpace(part))
		}
		all = append(all, fault{at, words[1:]})
	}
	return all, nil
}

// inflict calls the hook for each fault at its time, one after the other. It returns when the last one was done.
func (h hook) inflict(ctx context.Context, begin time.Time, faults []fault) (settled time.Duration, err error) {
	for _, f := range faults {
		select {
		case <-time.After(time.Until(begin.Add(f.at))):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		if _, err := h.call(ctx, f.action...); err != nil {
			return 0, err
		}
		settled = time.Since(begin)
	}
	return settled, nil
}
