package node

import (
	"fmt"
	"log/slog"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/files"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/remote/rights"
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
	if err == nil && rights.Len() == 0 { // it is being written, or was emptied by mistake
		err = fmt.Errorf("--rights: %s has no pattern, which would withdraw all rights; want at least one", f.file)
	}
	if err == nil {
		err = server.SetRights(rights)
	}
	if err != nil {
		log.Warn("changed rights cannot be used; keeping the previous ones", "err", err)
		return
	}
	log.Info("rights were read again", "patterns", rights.Len())
}

// rightsLimit bounds the size of a rights file, in bytes.
const rightsLimit = 4 << 20

// readRights reads a rights file.
func readRights(flag, file string) (*rights.Grants, error) {
	text, err := files.Read(file, rightsLimit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	rights, err := rights.Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", flag, file, err)
	}
	return rights, nil
}
