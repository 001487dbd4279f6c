package peer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/wakebell/wakebell/remote/internal/limits"
)

var errAddressHeld = errors.New("the address belongs to another peer")

// peer is a process at an address, from its first stream to the end of its last, or
// one of Config.Peers. Only peers are dialled, and only peers receive responses.
type peer struct {
	address    string
	owner      string         // by its credentials
	credential string         // kind of the credentials
	token      string         // token of the peer, sent back when it is dialled
	configured bool           // one of Config.Peers
	dial       string         // checked address to dial; empty: address
	host       string         // host that it connects from
	window     ResponseWindow // what it asks for
	leases     *limits.Holder // what its subscribers have not been sent yet; nil: it has not come yet

	mu      sync.Mutex
	streams int                    // inbound
	watched map[[2]string]struct{} // pairs of a local actor and its watcher at the peer
	cut     context.CancelFunc     // ends the link; nil: there was none
	gone    bool                   // removed from peers

	mail      []*outgoing    // messages that wait for the link
	mailBytes *limits.Holder // of their bytes; nil: the peer has not come yet
	watching  *limits.Holder // of those in watched
	writing   bool           // a goroutine writes the link
	up        bool           // whether the link is up
	notBefore time.Time      // time of the earliest next dial
	watchees  []watching
	wake      chan struct{} // has room for one
}

// peers is the set of all peers.
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

// addConfigured adds the peers that are dialled before their first and after their
// last stream.
func (b *peers) addConfigured(addresses []string, token string) {
	for _, address := range addresses {
		p := newPeer(address, "", token)
		p.mailBytes = b.mail.Holder(limits.Party{Principal: "\x00" + address, Host: "\x00" + address}) // until its first stream
		p.configured = true
		b.known[address] = p
	}
}

// arrive adds a stream of a peer at an address. Two owners cannot share an address.
// dial is the checked address.
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
	if p.configured && p.streams == 0 { // any owner
		p.owner = owner
	}
	if p.owner != owner {
		return nil, errAddressHeld
	}
	if !p.configured {
		p.token, p.dial, p.host = token, dial, w.host
	}
	if p.streams == 0 {
		p.host, p.credential = host, w.credential
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

// leave removes a stream, and reports whether it was the last one.
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

// Clear forgets the unread responses and leases. The caller holds the lock.
func (p *peer) Clear() {
	p.window.Clear()
	p.leases.Clear()
}

// onCut sets the function that ends the link when the peer is gone.
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

// watches records that the peer starts or stops to watch a local actor. It returns
// false if it watches too many.
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

// unwatched removes and returns what the peer watches.
func (p *peer) unwatched() map[[2]string]struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.watched
	p.watching.Give(len(taken))
	p.watched = map[[2]string]struct{}{}
	return taken
}
