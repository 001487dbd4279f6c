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

// Failures limits the answers to wrong credentials of each client address: ten, and then
// one every six seconds. An IPv6 address counts with its network of 64 bits. The zero
// value is ready.
//
// Right credentials do not come here: many browsers may have the address of one proxy,
// and a guess of one of them must not keep the others out.
type Failures struct {
	mu    sync.Mutex
	until map[netip.Prefix]time.Time // when all failures are forgotten
}

// Fail counts wrong credentials of a client address. If it had too many, they are not
// counted, and Fail returns how long until the next are.
func (f *Failures) Fail(remote string, now time.Time) (wait time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := network(remote)
	from := f.until[of]
	if wait := from.Add(-(burst - 1) * recovery).Sub(now); wait > 0 {
		return wait
	}
	if f.until == nil {
		f.until = map[netip.Prefix]time.Time{}
	}
	if len(f.until) >= maxTracks {
		f.forget(now)
	}
	if from.Before(now) {
		from = now
	}
	f.until[of] = from.Add(recovery)
	return 0
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
