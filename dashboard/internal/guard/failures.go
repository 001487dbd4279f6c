package guard

import (
	"net/netip"
	"sync"
	"time"
)

// Bounds of failed sign-ins.
const (
	burst     = 10              // failures of one network in a row
	recovery  = 6 * time.Second // after which one more failure is possible
	maxTracks = 10_000          // networks that are remembered
)

// Failures limits failed sign-ins of each client address: ten, and then one every
// six seconds. An IPv6 address counts with its network of 64 bits. The zero value is
// ready.
type Failures struct {
	mu    sync.Mutex
	until map[netip.Prefix]time.Time // when all failures are forgotten
}

// Wait returns how long a client address has to wait before its next attempt.
func (f *Failures) Wait(remote string, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	free := f.until[network(remote)].Add(-(burst - 1) * recovery)
	return max(0, free.Sub(now))
}

// Add counts a failure.
func (f *Failures) Add(remote string, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.until == nil {
		f.until = map[netip.Prefix]time.Time{}
	}
	if len(f.until) >= maxTracks {
		f.forget(now)
	}
	of := network(remote)
	from := f.until[of]
	if from.Before(now) {
		from = now
	}
	f.until[of] = from.Add(recovery)
}

// forget removes the networks without recent failures or, if there are none, any
// half.
func (f *Failures) forget(now time.Time) {
	for of, until := range f.until {
		if until.Before(now) {
			delete(f.until, of)
		}
	}
	for of := range f.until {
		if len(f.until) < maxTracks/2 {
			return
		}
		delete(f.until, of)
	}
}

func network(remote string) netip.Prefix {
	from, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	addr, bits := from.Addr().Unmap().WithZone(""), 64
	if addr.Is4() {
		bits = 32
	}
	p, _ := addr.Prefix(bits) // the number of bits is valid
	return p
}
