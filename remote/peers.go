package remote

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// maxOwed bounds what a peer is owed: an answer weighs 1, one with bodies
	// heavyAnswer. A peer that does not read what it asked for is read no more.
	maxOwed     = 2048
	heavyAnswer = 64

	// owedFor is how long a peer may leave all of that unread.
	owedFor = time.Minute

	// maxWatches bounds what a peer watches.
	maxWatches = 1024
)

var (
	errAddressHeld = errors.New("the address is another peer's")
	errNotReading  = errors.New("the peer does not take its answers")
)

// peer is a process at an address, from its first stream to the end of its
// last, or one of Config.Peers. Only a peer is dialled, and only an answer to it is sent.
type peer struct {
	address string
	owner   string // by its credentials
	token   string // that it showed, and is shown when it is dialled
	kept    bool   // it is one of Config.Peers
	dial    string // what is dialled for address: what was checked; empty: address
	host    string // where it connects from

	mu      sync.Mutex
	streams int // inbound
	asked   int // answers that were asked for and not sent
	owed    int // their weight
	change  chan struct{}
	watched map[[2]string]struct{} // its actors, and those of ours that they watch
	cut     context.CancelFunc     // of the link; nil: there was none
	gone    bool                   // it is no peer any more

	mail      []*outgoing // that wait for the link
	mailBytes int
	writing   bool      // somebody sends it
	rest      time.Time // not dialled again before
	watchees  []watching
	wake      chan struct{} // has room for one
}

// peers are all that there are.
type peers struct {
	mu    sync.Mutex
	known map[string]*peer
}

func newPeer(address, owner, token string) *peer {
	return &peer{
		address: address, owner: owner, token: token,
		change: make(chan struct{}), watched: map[[2]string]struct{}{}, wake: make(chan struct{}, 1),
	}
}

// keep notes peers that are dialled before they have come, and after they have
// gone.
func (b *peers) keep(addresses []string, token string) {
	for _, address := range addresses {
		p := newPeer(address, "", token)
		p.kept = true
		b.known[address] = p
	}
}

// arrive notes a stream of a peer that says where it is. Two owners cannot be
// at one address.
func (b *peers) arrive(address, dial string, w who) (*peer, error) {
	owner, token := w.owner, w.token
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.known[address]
	if p == nil {
		p = newPeer(address, owner, token)
		b.known[address] = p
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept && p.streams == 0 { // whoever it is
		p.owner = owner
	}
	if p.owner != owner {
		return nil, errAddressHeld
	}
	if !p.kept {
		p.token, p.dial, p.host = token, dial, w.host
	}
	p.streams++
	return p, nil
}

// leave notes the end of a stream, and reports whether it was the last.
func (b *peers) leave(p *peer) (gone bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.streams--; p.streams > 0 {
		return false
	}
	if p.kept {
		p.forgive()
		return true
	}
	delete(b.known, p.address)
	p.gone = true
	p.forgive()
	if p.cut != nil {
		p.cut()
	}
	return true
}

func (b *peers) at(address string) (*peer, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, ok := b.known[address]
	return p, ok
}

// forgive forgets what is owed: nobody will get it. The lock is held.
func (p *peer) forgive() {
	p.asked, p.owed = 0, 0
	close(p.change)
	p.change = make(chan struct{})
}

// onCut has the link ended when the peer is gone.
func (p *peer) onCut(cancel context.CancelFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut = cancel; p.gone {
		cancel()
	}
}

func (p *peer) removed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gone
}

// debt is answers, and what they weigh.
type debt struct{ answers, weight int }

// owe notes that the peer is to get answers, and waits until there is room for
// more: what a peer does not read must not pile up here.
func (p *peer) owe(ctx context.Context, more debt) error {
	p.mu.Lock()
	p.asked += more.answers
	p.owed += more.weight
	p.mu.Unlock()
	var late *time.Timer
	for {
		p.mu.Lock()
		owed, change := p.owed, p.change
		p.mu.Unlock()
		if owed < maxOwed {
			return nil
		}
		if late == nil {
			late = time.NewTimer(owedFor)
			defer late.Stop()
		} else {
			late.Reset(owedFor)
		}
		select {
		case <-change:
		case <-late.C:
			return errNotReading
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// paid notes that answers have left. An Error weighs less than what was asked
// for; the last answer settles that.
func (p *peer) paid(less debt) {
	if less.answers == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	full := p.owed >= maxOwed
	p.asked = max(p.asked-less.answers, 0)
	if p.owed = max(p.owed-less.weight, 0); p.asked == 0 {
		p.owed = 0
	}
	if full && p.owed < maxOwed {
		close(p.change)
		p.change = make(chan struct{})
	}
}

// watches notes that the peer watches an actor of ours, or does no longer;
// false: it watches too many.
func (p *peer) watches(target, watcher string, on bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := [2]string{target, watcher}
	if !on {
		delete(p.watched, key)
		return true
	}
	if _, twice := p.watched[key]; !twice && len(p.watched) >= maxWatches {
		return false
	}
	p.watched[key] = struct{}{}
	return true
}

// unwatched takes what the peer watches, to be undone when it is gone.
func (p *peer) unwatched() map[[2]string]struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.watched
	p.watched = map[[2]string]struct{}{}
	return taken
}
