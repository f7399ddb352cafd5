package main

import (
	"context"
	"encoding/gob"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/seed-161337e5/caddyratelimit/bench/internal/rig"
)

const (
	// anotherName is this store as another build of this command has it.
	anotherName = "another build"

	// besideName is this store in turns with the fleet that lends.
	besideName = ourName + ", beside lending"
)

// fleetPeers are the limiters that a fleet compares.
func fleetPeers() []peer {
	return []peer{
		ours(ourName, "token_bucket", noDenyCache), lending(lendingName), redisRate(), ululeLimiter(), traefikStyle(), evalsha(), leastScript(),
	}
}

// fleetPlan says what is measured.
type fleetPlan struct {
	peers                 []string
	processes, goroutines []int
	distributions         []string
	clients               int
	rounds                int
	warm, time            time.Duration
	lendWarm, lendTime    time.Duration // see the flags
	another               string        // the path of the other build, or empty
	progress              io.Writer
}

// fleetCell is a place in the tables of a fleet.
type fleetCell struct {
	peer, distribution    string
	processes, goroutines int
}

// fleetFigures are what is measured in a cell.
type fleetFigures struct{ perSecond, redisCPU, calls, script, p50, p99, clientCPU float64 }

// benchFleet is the command "bench fleet".
func benchFleet(args []string) (err error) {
	flags := flag.NewFlagSet("bench fleet", flag.ContinueOnError)
	var (
		cellTime   = flags.Duration("time", 2*time.Second, "how long each cell is measured, each round")
		warm       = flags.Duration("warm", 150*time.Millisecond, "how long each cell runs before it is measured")
		lendWarm   = flags.Duration("lend-warm", 15*time.Second, "how long a fleet that lends runs under Zipf's law before its cells, until its holds are as large as they get; 0: as all others")
		lendTime   = flags.Duration("lend-time", 3*time.Second, "how long each of these cells is measured, because what is held is used for seconds")
		rounds     = flags.Int("rounds", 5, "how many rounds; the tables show medians")
		processes  = flags.String("processes", "1,4,16", "how many processes decide at once")
		goroutines = flags.String("goroutines", "1,4,16", "how many requests of each process are under way")
		keys       = flags.Int("keys", maxClients, "how many clients there are")
		only       = flags.String("only", "", "measure only these distributions, such as uniform,zipf,hot")
		peers      = flags.String("peers", "", "measure only the limiters whose names contain one of these, such as "+lendingName+",ulule; "+ourName+" always")
		another    = flags.String("another", "", "also measure this store as another build of this command has it: its path")
		page       = flags.String("page", "", "also put the tables into this file, between <!-- fleet --> and <!-- /fleet -->")
	)
	if err := flags.Parse(args); err != nil {
		return err
	}
	p := fleetPlan{clients: *keys, rounds: *rounds, warm: *warm, time: *cellTime, lendWarm: *lendWarm, lendTime: *lendTime, another: *another, progress: os.Stderr}
	if *cellTime <= 0 || *lendTime <= 0 || *rounds < 1 || *keys < 2 || *keys > maxClients {
		return fmt.Errorf("time, lend-time and rounds must be above 0, keys from 2 to %d", maxClients)
	}
	if p.processes, err = numbers(*processes); err != nil {
		return fmt.Errorf("processes: %w", err)
	}
	if p.goroutines, err = numbers(*goroutines); err != nil {
		return fmt.Errorf("goroutines: %w", err)
	}
	for _, d := range []struct{ short, name string }{{"uniform", uniform}, {"zipf", zipf}, {"hot", hot}} {
		if *only == "" || strings.Contains(","+*only+",", ","+d.short+",") {
			p.distributions = append(p.distributions, d.name)
		}
	}
	for _, peer := range fleetPeers() {
		if peer.name == ourName || slices.ContainsFunc(strings.Split(*peers, ","), func(part string) bool { return strings.Contains(peer.name, part) }) {
			p.peers = append(p.peers, peer.name)
		}
	}
	if *another != "" {
		p.peers = append(p.peers, anotherName)
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server, err := rig.StartRedis()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	results, err := p.run(ctx, server)
	if err != nil {
		return err
	}
	machine := fmt.Sprintf("%s; %d rounds, %v a cell, %v of lending under Zipf's law", rig.Machine(server.Version(ctx)), *rounds, *cellTime, *lendTime)
	text := results.markdown(machine, &p)
	if *page != "" {
		if err := rig.Rewrite(*page, "fleet", text); err != nil {
			return err
		}
	}
	_, err = fmt.Print(text)
	return err
}

// process is a process of a fleet.
type process struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	orders  *gob.Encoder
	reports *gob.Decoder
}

func startProcess(ctx context.Context, binary string) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, binary, workerName)}
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.orders, p.reports = in, gob.NewEncoder(in), gob.NewDecoder(out)
	return p, p.cmd.Start()
}

func (p *process) end() error { return errors.Join(p.in.Close(), p.cmd.Wait()) }

// run measures all peers in turn in each cell, round after round.
func (p *fleetPlan) run(ctx context.Context, server *rig.Redis) (r *fleetResults, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	fleets := map[string][]*process{}
	defer func() {
		for _, fleet := range fleets {
			for _, process := range fleet {
				err = errors.Join(err, process.end())
			}
		}
	}()
	most := 0
	for _, n := range p.processes {
		most = max(most, n)
	}
	for name, binary := range map[string]string{"": self, anotherName: p.another} {
		for range most {
			if binary == "" {
				break
			}
			one, err := startProcess(ctx, binary)
			if err != nil {
				return nil, err
			}
			fleets[name] = append(fleets[name], one)
		}
	}
	r = &fleetResults{rounds: map[fleetCell][]fleetFigures{}}
	for round := range p.rounds {
		for _, d := range p.distributions {
			fmt.Fprintf(p.progress, "round %d of %d: %s\n", round+1, p.rounds, d)
			if err := p.prepare(ctx, server, d); err != nil {
				return nil, err
			}
			for _, processes := range p.processes {
				for _, t := range p.turnsOf(d) {
					if err := p.take(ctx, server, fleets, t, fleetCell{distribution: d, processes: processes}, round, r); err != nil {
						return nil, err
					}
				}
			}
		}
	}
	return r, nil
}

// limitOf returns a limit that nobody reaches, under which most keys live through the measurement.
func limitOf(distribution string) fleetLimit {
	const period = 100 * 24 * time.Hour
	switch distribution {
	case uniform:
		return fleetLimit{10_000, period}
	case zipf: // the most frequent client comes tens of millions of times in a round
		return fleetLimit{300_000_000, 30 * period}
	}
	return fleetLimit{1_000_000_000, period}
}

// prepare has each client come once to each peer, so that all keys exist.
func (p *fleetPlan) prepare(ctx context.Context, server *rig.Redis, distribution string) error {
	if err := server.Empty(ctx); err != nil {
		return err
	}
	for _, peer := range fleetPeers() {
		if !slices.Contains(p.peers, peer.name) {
			continue
		}
		of := limitOf(distribution)
		l, err := peer.open(server.Address, limit{events: of.Events, period: of.Period, zones: 1})
		if err != nil {
			return err
		}
		if err := errors.Join(visit(ctx, l, p.clients), l.close()); err != nil {
			return fmt.Errorf("%s: %w", peer.name, err)
		}
	}
	return nil
}

// turns are peers that are measured in turns, each cell for a time, after the fleet that lends, if it is one of
// them, has run for a while.
type turns struct {
	peers      []string
	warm, time time.Duration
}

// turnsOf returns who is measured in turns. By Zipf's law, the fleet that lends holds what comes often before
// it is measured, and again before each cell, because it returns much of that in the pause. The fleet that does
// not lend is measured a second time in turns with it, because the speed of a machine changes within minutes. Where
// clients come evenly, none comes often, and units of one hot key are held at once.
func (p *fleetPlan) turnsOf(distribution string) []turns {
	at := slices.Index(p.peers, lendingName)
	if p.lendWarm == 0 || distribution != zipf || at < 0 {
		return []turns{{peers: p.peers, time: p.time}}
	}
	others := slices.Delete(slices.Clone(p.peers), at, at+1)
	return []turns{{peers: others, time: p.time}, {peers: []string{besideName, lendingName}, warm: p.lendWarm, time: p.lendTime}}
}

// take measures the cells of some turns for one distribution and number of processes.
func (p *fleetPlan) take(ctx context.Context, server *rig.Redis, fleets map[string][]*process, t turns, c fleetCell, round int, r *fleetResults) error {
	if t.warm > 0 {
		c.peer, c.goroutines = lendingName, slices.Max(p.goroutines)
		if _, err := p.measure(ctx, server, fleets[""][:c.processes], c, 0, t.warm); err != nil {
			return err
		}
	}
	for _, c.goroutines = range p.goroutines {
		for i := range t.peers {
			c.peer = t.peers[(i+round)%len(t.peers)]
			fleet, warm := fleets[""], p.warm
			switch c.peer {
			case anotherName:
				fleet = fleets[anotherName]
			case lendingName:
				warm += t.warm / 10
			}
			f, err := p.measure(ctx, server, fleet[:c.processes], c, warm, t.time)
			if err != nil {
				return fmt.Errorf("%s, %s, %d processes with %d requests each: %w", c.peer, c.distribution, c.processes, c.goroutines, err)
			}
			r.rounds[c] = append(r.rounds[c], f)
		}
	}
	return nil
}

// measure has some processes decide at the same time: for a while that is not measured, and for one that is.
func (p *fleetPlan) measure(ctx context.Context, server *rig.Redis, fleet []*process, c fleetCell, warm, measured time.Duration) (f fleetFigures, err error) {
	begin := time.Now().Add(warm + time.Duration(len(fleet))*5*time.Millisecond)
	end := begin.Add(measured)
	o := order{
		Peer: c.peer, Address: server.Address, Limit: limitOf(c.distribution), Distribution: c.distribution,
		Clients: p.clients, Goroutines: c.goroutines, Begin: begin.UnixNano(), End: end.UnixNano(),
	}
	if o.Peer == anotherName || o.Peer == besideName {
		o.Peer = ourName
	}
	for _, one := range fleet {
		if err := one.orders.Encode(&o); err != nil {
			return f, err
		}
	}
	time.Sleep(time.Until(begin))
	before, err := used(ctx, server)
	if err != nil {
		return f, err
	}
	time.Sleep(time.Until(end))
	after, err := used(ctx, server)
	if err != nil {
		return f, err
	}
	var t tally
	var client time.Duration
	for _, one := range fleet {
		var r report
		if err := one.reports.Decode(&r); err != nil {
			return f, err
		}
		r.addTo(&t)
		client += r.CPU
	}
	decided := float64(t.admitted + t.refused)
	if decided == 0 || t.refused > 0 || t.failed > 0 {
		return f, fmt.Errorf("%d admitted, %d refused, %d failed: %w", t.admitted, t.refused, t.failed, t.err)
	}
	micros := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
	return fleetFigures{
		perSecond: decided / measured.Seconds(),
		redisCPU:  micros(after.cpu-before.cpu) / decided,
		calls:     (after.calls - before.calls) / decided,
		script:    (after.micros - before.micros) / max(after.calls-before.calls, 1),
		p50:       micros(t.latency.quantile(0.5)),
		p99:       micros(t.latency.quantile(0.99)),
		clientCPU: micros(client) / decided,
	}, nil
}

// scripted is what a server has used so far.
type scripted struct {
	cpu           time.Duration // in all
	calls, micros float64       // of EVALSHA, and the time in it
}

func used(ctx context.Context, server *rig.Redis) (s scripted, err error) {
	if s.cpu, err = server.CPU(ctx); err != nil {
		return s, err
	}
	info, err := server.Client.Info(ctx, "commandstats").Result()
	if err != nil {
		return s, err
	}
	_, rest, _ := strings.Cut(info, "cmdstat_evalsha:")
	_, _ = fmt.Sscanf(rest, "calls=%f,usec=%f", &s.calls, &s.micros) // there are none before the first call
	return s, nil
}
