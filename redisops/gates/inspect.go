package gates

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/wakebell/wakebell/messages/gate"
	"github.com/wakebell/wakebell/redisops"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

// maxWaiters bounds the waiters that Show lists.
const maxWaiters = 100

// Info is a gate as Redis has it.
type Info struct {
	Name string
	Now  time.Time // Redis's clock

	// Holder has the turn; its Fence is 0 when nobody does.
	Holder Ticket
	// Confirmed says that the holder knows; else the turn is being handed to it.
	Confirmed bool
	// Until is when the lease ends unless it is extended, or, of one that is
	// not confirmed, when the turn goes on to the next.
	Until time.Time

	Waiting int      // how many wait
	Waiters []Ticket // the first 100 of them, in order

	// LastFence is the highest token that was issued; 0: none that is remembered,
	// as of a gate that was never used or was idle for 5 minutes.
	LastFence uint64
	// Guard is the newest token seen, by resource; of more than 1,000 resources it
	// has 1,000.
	Guard map[string]uint64

	// Err says what of the gate cannot be read. List yields it with the gate and
	// goes on.
	Err error
}

// Ticket is somebody at a gate.
type Ticket struct {
	Fence uint64 // its ticket: the fencing token, once it has the turn
	// Process is host:pid:random of the process.
	Process string
}

// Show reads a gate; one that was never used is a gate that nobody holds.
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

// numberReader reads numbers of a reply and keeps the first error.
type numberReader struct{ err error }

func (r *numberReader) number(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("%w: number %q", scripts.ErrReply, text)
	}
	return n
}

// processOf takes the number off an owner.
func processOf(owner string) string {
	if i := strings.LastIndexByte(owner, '#'); i >= 0 {
		return owner[:i]
	}
	return owner
}

// List yields the gates that are held or waited for, without their waiters, in
// no order. One that comes into use meanwhile may be missed. A gate that cannot
// be read is yielded with its Err.
func (s *Store) List(ctx context.Context) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		var cursor uint64
		seen := map[string]bool{}
		for {
			found, next, err := s.RDB.ZScan(ctx, s.keys.Deadlines, cursor, "", layout.ScanPage).Result()
			if err != nil {
				yield(Info{}, fmt.Errorf("gates in %q: %w", s.keys.Deadlines, scripts.Wrap(ctx, nil, err)))
				return
			}
			for i := 0; i < len(found); i += 2 { // members and scores
				if seen[found[i]] {
					continue
				}
				seen[found[i]] = true
				info, err := s.show(ctx, found[i], 0)
				if errors.Is(err, redisops.ErrWrongType) || errors.Is(err, scripts.ErrReply) {
					info, err = Info{Name: found[i], Err: err}, nil
				}
				if !yield(info, err) || err != nil {
					return
				}
			}
			if cursor = next; cursor == 0 {
				return
			}
		}
	}
}

// Release takes the turn with this token away from its holder, and hands over
// to the next. It reports whether the token had the turn.
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
