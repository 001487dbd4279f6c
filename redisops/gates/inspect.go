package gates

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/wakebell/wakebell/internal/paging"
	"github.com/wakebell/wakebell/messages/gate"
	"github.com/wakebell/wakebell/redisops"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

// maxWaiters bounds the waiters that Show lists.
const maxWaiters = 100

// Info is the state of a gate in Redis.
type Info struct {
	Name string
	Now  time.Time // Redis's clock

	// Holder has the turn; its Fence is 0 if the gate is free.
	Holder Ticket
	// Confirmed reports that the holder has received the turn; otherwise it is
	// being handed over.
	Confirmed bool
	// Until is when the lease expires unless it is extended. For an unconfirmed
	// holder it is when the turn passes to the next waiter.
	Until time.Time

	Waiting int      // number of waiters
	Waiters []Ticket // the first 100 waiters, in order

	// LastFence is the highest token issued; 0 if none is stored, for a gate that
	// was never used or was idle for 5 minutes.
	LastFence uint64
	// Guard is the newest token used, by resource; at most 1,000 resources.
	Guard map[string]uint64

	// Cursor continues a listing after this gate: its name. Only List sets it.
	Cursor string

	// Err reports what of the gate cannot be read. List yields it with the gate and
	// continues.
	Err error
}

// Ticket is a process's place at a gate.
type Ticket struct {
	Fence uint64 // the ticket, which becomes the fencing token of the turn
	// Process is host:pid:random of the process.
	Process string
}

// Show reads a gate. A gate that was never used is reported as free.
func (s *Store) Show(ctx context.Context, name string) (Info, error) {
	return s.show(ctx, name, maxWaiters)
}

func (s *Store) show(ctx context.Context, name string, most int) (Info, error) {
	if err := CheckName(name); err != nil {
		return Info{}, err
	}
	keys := []string{s.keys.state(name), s.keys.stream(name), s.keys.guard(name)}
	list, err := s.RunList(ctx, 8, showScript, keys, most)
	if err != nil {
		return Info{}, fmt.Errorf("gate %q: %w", name, err)
	}
	head, err := scripts.Texts(append(list[:7:7], list[8:]...))
	if err != nil {
		return Info{}, err
	}
	guarded, ok := list[7].([]any)
	if !ok {
		return Info{}, fmt.Errorf("%w: %T, want a list", scripts.ErrReply, list[7])
	}
	guard, err := scripts.Texts(guarded)
	if err != nil {
		return Info{}, err
	}
	info := Info{Name: name, Confirmed: head[3] == "h", Guard: map[string]uint64{}}
	read := numberReader{}
	info.Now = instantOfMicros(read.number(head[0]))
	if fence := read.number(head[1]); fence != 0 {
		info.Holder = Ticket{fence, processOf(head[2])}
		info.Until = instantOfMicros(read.number(head[4]))
	}
	info.LastFence = read.number(head[5])
	info.Waiting = int(read.number(head[6])) //nolint:gosec // a length
	for i := 7; i+1 < len(head); i += 2 {
		info.Waiters = append(info.Waiters, Ticket{read.number(head[i]), processOf(head[i+1])})
	}
	for i := 0; i+1 < len(guard); i += 2 {
		if guard[i] == removedField {
			continue
		}
		info.Guard[guard[i]] = read.number(guard[i+1])
	}
	return info, read.err
}

// numberReader reads numbers of a reply and retains the first error.
type numberReader struct{ err error }

func (r *numberReader) number(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("%w: number %q", scripts.ErrReply, text)
	}
	return n
}

// processOf removes the number from an owner.
func processOf(owner string) string {
	if i := strings.LastIndexByte(owner, '#'); i >= 0 {
		return owner[:i]
	}
	return owner
}

// List yields the gates with names after the given one that are held or have
// waiters, without the waiters, in the order of their names. A gate that comes into
// use meanwhile may be missing. A gate that cannot be read is yielded with its Err.
func (s *Store) List(ctx context.Context, after string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		for name, err := range paging.Names(after, func(cursor uint64) ([]string, uint64, error) { return s.scan(ctx, cursor) }) {
			var info Info
			if err == nil {
				info, err = s.listed(ctx, name)
			}
			if !yield(info, err) || err != nil {
				return
			}
		}
	}
}

// listed reads a gate for List.
func (s *Store) listed(ctx context.Context, name string) (Info, error) {
	info, err := s.show(ctx, name, 0)
	if errors.Is(err, redisops.ErrWrongType) || errors.Is(err, scripts.ErrReply) {
		info, err = Info{Name: name, Err: err}, nil
	}
	if err != nil {
		return Info{}, err
	}
	info.Cursor = name
	return info, nil
}

// scan reads a page of the names of the gates in use.
func (s *Store) scan(ctx context.Context, cursor uint64) (names []string, next uint64, err error) {
	found, next, err := s.RDB.ZScan(ctx, s.keys.Deadlines, cursor, "", layout.ScanPage).Result()
	if err != nil {
		return nil, 0, fmt.Errorf("gates in %q: %w", s.keys.Deadlines, scripts.Wrap(ctx, nil, err))
	}
	for i := 0; i < len(found); i += 2 { // members and scores
		names = append(names, found[i])
	}
	return names, next, nil
}

// Release revokes the turn with this token and passes it to the next waiter. It
// reports whether the token had the turn.
func (s *Store) Release(ctx context.Context, name string, fence uint64, t gate.Terms) (bool, error) {
	if err := CheckName(name); err != nil {
		return false, err
	}
	k := s.keys
	keys := []string{k.state(name), k.stream(name), k.Deadlines, k.Presence, k.Mark}
	text, err := s.RunText(ctx, releaseScript, keys, name, k.Group, k.channels(), ticketText(gate.Ticket(fence)),
		wholeMicros(t.Lease), wholeMicros(t.Signal), wholeMicros(t.Presence))
	if err != nil {
		return false, fmt.Errorf("release gate %q: %w", name, err)
	}
	return text == "1", nil
}
