package gate

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/opened"
	terms "github.com/wakebell/wakebell/messages/gate"
)

// Config configures Gates. The zero value is valid. All processes that share gates should
// have the same configuration.
type Config struct {
	// LeaseTTL is how long a turn is held after its process died, 300 ms to
	// 24 h; default 10 s. While the process lives, the turn is extended every
	// third of LeaseTTL. redis-fifo-lock calls it claim idle.
	LeaseTTL time.Duration
}

// The defaults of the terms of gates.
const (
	leaseTTL    = 10 * time.Second
	signalTTL   = 500 * time.Millisecond // of a turn that no process has confirmed
	presenceTTL = 2 * time.Second        // of the places of a process without a heartbeat
)

func (c Config) withDefaults() Config {
	c.LeaseTTL = cmp.Or(c.LeaseTTL, leaseTTL)
	return c
}

// terms returns the terms of the exchanges with Redis.
func (c Config) terms(s opened.GateSwitches) (terms.Terms, error) {
	t := terms.Terms{Lease: c.LeaseTTL, Signal: cmp.Or(s.SignalTTL, signalTTL), Presence: cmp.Or(s.PresenceTTL, presenceTTL)}
	return t, errors.Join(
		argument.Within("LeaseTTL", t.Lease, 300*time.Millisecond, 24*time.Hour),
		argument.Within("SignalTTL", t.Signal, 50*time.Millisecond, time.Minute),
		argument.Within("PresenceTTL", t.Presence, 400*time.Millisecond, time.Minute),
	)
}

// processName identifies a waiting process to operators: the host, the process
// id, and a random part that differs between its incarnations.
func processName() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	host = strings.NewReplacer("#", "_", "\n", "_").Replace(host)
	return fmt.Sprintf("%s:%d:%s", host, os.Getpid(), uuid.NewString()[:8])
}
