package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// errAbsent is wrapped by the errors of contenders that cannot run here.
var errAbsent = errors.New("not available")

// contender is a program that does the work of a trial.
type contender struct {
	name string
	run  func(context.Context, *world) (sample, error)
}

// trial is a task for all contenders. They run alternately in each round, so that all
// of them have the same load on the machine.
type trial struct {
	name, about string
	contenders  []contender
	once        bool // one round is enough: it takes long and hardly varies
}

// bench runs trials.
type bench struct {
	world  *world
	rounds int
	only   []string // beginnings of trials, contenders or "trial/contender"; none: all
}

// chosen reports whether a contender is to run.
func (b *bench) chosen(t trial, c contender) bool {
	if len(b.only) == 0 {
		return true
	}
	for _, part := range b.only {
		if strings.Contains("/"+t.name+"/"+c.name, "/"+part) {
			return true
		}
	}
	return false
}

func (b *bench) run(ctx context.Context, trials []trial, into *results) error {
	for _, t := range trials {
		rounds := b.rounds
		if t.once {
			rounds = 1
		}
		for round := range rounds {
			for i := range t.contenders {
				c := t.contenders[(i+round)%len(t.contenders)] // rotate the order
				if !b.chosen(t, c) || into.Absent[c.name] != "" {
					continue
				}
				if err := b.contest(ctx, t, c, round, into); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (b *bench) contest(ctx context.Context, t trial, c contender, round int, into *results) error {
	if err := b.world.clean(ctx); err != nil {
		return err
	}
	began := time.Now()
	s, err := c.run(ctx, b.world)
	switch {
	case errors.Is(err, errAbsent):
		into.absent(c.name, err.Error())
		_, _ = fmt.Fprintf(b.world.log, "%s/%s: %v\n", t.name, c.name, err)
		return nil
	case err != nil:
		return fmt.Errorf("%s/%s: %w", t.name, c.name, err)
	}
	into.add(t.name, c.name, s)
	_, _ = fmt.Fprintf(b.world.log, "%s/%s, round %d, %.1f s: %s\n",
		t.name, c.name, round+1, time.Since(began).Seconds(), s)
	return nil
}
