// Command bench measures Wakebell against its peers. See docs/performance.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt) //nolint:forbidigo // of the process
	defer stop()
	if err := command(ctx, os.Args[1:]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

const usage = `usage:
  bench peers [--rounds N] [--scale X] [--only PART,...] [--json FILE] [--profile FILE]   measure, and print tables
  bench report --from FILE                                             print the tables of a file
  bench plots --from FILE --to FOLDER                                  draw the figures of a file
  bench simulate [--check]                                             simulate the load of fleets`

func command(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	switch args[0] {
	case "peers":
		return peers(ctx, args[1:])
	case "report", "plots":
		return show(args[0], args[1:])
	case "simulate":
		return simulate(ctx, args[1:])
	default:
		return errors.New(usage)
	}
}

// show prints or draws the figures of a file.
func show(how string, args []string) error {
	flags := flag.NewFlagSet(how, flag.ContinueOnError)
	from := flags.String("from", "results.json", "figures of a run")
	to := flags.String("to", "../docs/performance", "folder for the plots")
	if err := flags.Parse(args); err != nil {
		return err
	}
	r, err := readResults(*from)
	if err != nil {
		return err
	}
	if how == "plots" {
		return draw(r, *to)
	}
	return r.report(os.Stdout)
}

// peers runs the trials and prints their tables.
func peers(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	rounds := flags.Int("rounds", 5, "runs of each contender; figures are medians")
	scale := flags.Float64("scale", 1, "factor for counts and durations")
	only := flags.String("only", "", "comma-separated beginnings of trials, contenders or trial/contender")
	path := flags.String("json", "", "write the figures to this file")
	profile := flags.String("profile", "", "write a CPU profile of the first measurement to this file, for go tool pprof")
	if err := flags.Parse(args); err != nil {
		return err
	}
	w, err := newWorld(*scale, os.Stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if *profile != "" {
		file, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		w.profile = file
	}
	b := &bench{world: w, rounds: *rounds}
	if *only != "" {
		b.only = strings.Split(*only, ",")
	}
	version, err := w.rdb.InfoMap(ctx, "server").Result()
	if err != nil {
		return err
	}
	r := &results{Began: time.Now().UTC(), Rounds: *rounds, Scale: *scale, Only: *only, Host: thisMachine(version["Server"]["redis_version"], nodeVersion(ctx))}
	if err := b.run(ctx, allTrials(), r); err != nil {
		return err
	}
	r.Took = time.Since(r.Began).Seconds()
	if *path != "" {
		if err := r.write(*path); err != nil {
			return err
		}
	}
	return r.report(os.Stdout)
}

// nodeVersion is that of the Node which runs BullMQ; empty: there is none.
func nodeVersion(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "node", "--version").Output()
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "v")
}
