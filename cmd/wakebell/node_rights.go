package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/wakebell/wakebell/remote"
)

// rightsFlag is the file of rights of a listener.
type rightsFlag struct {
	file string
	read fileStamp // of it
}

// take reads the file, if there is one.
func (f *rightsFlag) take(cfg *remote.Config) (err error) {
	if f.file == "" {
		return nil
	}
	f.read = stampOf(f.file) // before: what is written meanwhile is read again
	cfg.Rights, err = readRights("--rights", f.file)
	return err
}

// follow has the listener take the rights that are in the file, until ctx ends.
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
			log.Warn("changed rights cannot be used; those before stay in force", "err", err)
			continue
		}
		log.Info("rights were read again", "patterns", rights.Len())
	}
}
