package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/wakebell/wakebell/remote"
)

// rightsFlag is the rights file of a listener.
type rightsFlag struct {
	file string
	read fileStamp // of it
}

// take reads the file, if it is set.
func (f *rightsFlag) take(cfg *remote.Config) (err error) {
	if f.file == "" {
		return nil
	}
	f.read = stampOf(f.file) // before reading: a later write is a change
	cfg.Rights, err = readRights("--rights", f.file)
	return err
}

// follow reloads the rights when their file changes, until ctx ends.
func (f *rightsFlag) follow(ctx context.Context, server *remote.Server, log *slog.Logger) {
	tick := time.NewTicker(tokensEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := stampOf(f.file)
		if now == f.read {
			continue
		}
		f.read = now
		rights, err := readRights("--rights", f.file)
		if err == nil {
			err = server.SetRights(rights)
		}
		if err != nil {
			log.Warn("changed rights cannot be used; keeping the previous ones", "err", err)
			continue
		}
		log.Info("rights were read again", "patterns", rights.Len())
	}
}
