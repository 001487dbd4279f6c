package main

import (
	"log/slog"

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

// reload reads the rights from their changed file.
func (f *rightsFlag) reload(server *remote.Server, log *slog.Logger) {
	rights, err := readRights("--rights", f.file)
	if err == nil {
		err = server.SetRights(rights)
	}
	if err != nil {
		log.Warn("changed rights cannot be used; keeping the previous ones", "err", err)
		return
	}
	log.Info("rights were read again", "patterns", rights.Len())
}
