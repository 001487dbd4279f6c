package peer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/wakebell/wakebell/remote/internal/limits"
)

var errAddressHeld = errors.New("the address is another peer's")

// peer is a process at an address, from its first stream to the end of its
// last, or one of Config.Peers. Only a peer is dialled, and only an answer to it is sent.
type peer struct {
	address    string
	owner      string         // by its credentials
	token      string         // that it showed, and is shown when it is dialled
	configured bool           // it is one of Config.Peers
	dial       string         // what is dialled for address: what was checked; empty: address
	host       string         // where it connects from
	window     ResponseWindow // what it asks for
	leases     *limits.Holder // what its subscribers have not been sent yet; nil: it has not come yet

	mu      sync.Mutex
	streams int                    // inbound
	watched map[[2]string]struct{} // its actors, and those of ours that they watch
	cut     context.CancelFunc     // of the link; nil: there was none
	gone    bool                   // it is no peer any more

	mail      []*outgoing    // that wait for the link
	mailBytes *limits.Holder // of their bytes; nil: the peer has not come yet
	watching  *limits.Holder // of those in watched
	writing   bool           // somebody sends it
	up        bool           // the link, while it is written to
	notBefore time.Time      // not dialled again before
	watchees  []watching
	wake      chan struct{} // has room for one
}

// peers are all that there are.
type peers struct {
	Answers, leases, mail, watches *limits.Budget

	mu    sync.Mutex
	known map[string]*peer
}

func newPeer(address, owner, token string) *peer {
	return &peer{
		address: address, owner: owner, token: token,
		watched: map[[2]string]struct{}{}, wake: make(chan struct{}, 1),
	}
}

// keep notes peers that are dialled before they have come, and after they have
// gone.
func (b *peers) addConfigured(addresses []string, token string) {
	for _, address := range addresses {
		p := newPeer(address, "", token)
		p.mailBytes = b.mail.Holder(limits.Party{Principal: "\x00" + address, Host: "\x00" + address}) // until it has come
		p.configured = true
		b.known[address] = p
	}
}

// arrive notes a stream of a peer that says where it is. Two owners cannot be
// at one address. What is dialled for it was checked.
func (b *peers) arrive(address, dial string, w Caller) (*peer, error) {
	owner, host, token := w.Owner, w.host, w.token
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.known[address]
	if p == nil {
		p = newPeer(address, owner, token)
		b.known[address] = p
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.configured && p.streams == 0 { // whoever it is
		p.owner = owner
	}
	if p.owner != owner {
		return nil, errAddressHeld
	}
	if !p.configured {
		p.token, p.dial, p.host = token, dial, w.host
	}
	if p.streams == 0 {
		p.host = host
		of := limits.Party{Principal: owner, Host: host}
		p.window.belong(b.Answers.Holder(of))
		p.leases.Clear()
		p.leases = b.leases.Holder(of)
		p.mailBytes = p.mailBytes.MoveTo(b.mail.Holder(of))
		p.watching = p.watching.MoveTo(b.watches.Holder(of))
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
	if p.configured {
		p.Clear()
		return true
	}
	delete(b.known, p.address)
	p.gone = true
	p.Clear()
	if p.cut != nil {
		p.cut()
	}
	return true
}

func (b *peers) At(address string) (*peer, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, ok := b.known[address]
	return p, ok
}

// Clear forgets what waits for the peer to read it. The lock is held.
func (p *peer) Clear() {
	p.window.Clear()
	p.leases.Clear()
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

// watches notes that the peer watches an actor of ours, or does no longer;
// false: it watches too many.
func (p *peer) watches(target, watcher string, on bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := [2]string{target, watcher}
	if !on {
		if _, was := p.watched[key]; was {
			delete(p.watched, key)
			p.watching.Give(1)
		}
		return true
	}
	if _, twice := p.watched[key]; !twice && p.watching.Take(1) != nil {
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
	p.watching.Give(len(taken))
	p.watched = map[[2]string]struct{}{}
	return taken
}
