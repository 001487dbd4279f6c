package gates

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/wakebell/wakebell/internal/paging"
	"github.com/wakebell/wakebell/messages/gate"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// maxWaiters bounds the waiters that Show lists.
const maxWaiters = 100

// Show reads a gate. A gate that was never used is reported as free.
func (s *Store) Show(ctx context.Context, name string) (wakebelltype.GateInfo, error) {
	return s.show(ctx, name, maxWaiters)
}

func (s *Store) show(ctx context.Context, name string, most int) (wakebelltype.GateInfo, error) {
	if err := CheckName(name); err != nil {
		return wakebelltype.GateInfo{}, err
	}
	k := s.keys(name)
	keys := []string{k.state(name), k.stream(name), k.guard(name), k.holds(name)}
	list, err := s.RunList(ctx, 10, showScript, keys, most)
	if err != nil {
		return wakebelltype.GateInfo{}, fmt.Errorf("gate %q: %w", name, err)
	}
	head, err := scripts.Texts(append(list[:7:7], list[9:]...))
	if err != nil {
		return wakebelltype.GateInfo{}, err
	}
	guard, err := textsOf(list[7])
	if err != nil {
		return wakebelltype.GateInfo{}, err
	}
	holds, err := textsOf(list[8])
	if err != nil {
		return wakebelltype.GateInfo{}, err
	}
	info := wakebelltype.GateInfo{Name: name, Confirmed: head[3] == "h", Guard: map[string]uint64{}}
	read := numberReader{}
	info.Now = instantOfMicros(read.number(head[0]))
	if fence := read.number(head[1]); fence != 0 {
		info.Holder = wakebelltype.GateTicket{Fence: fence, Process: processOf(head[2])}
		info.Until = instantOfMicros(read.number(head[4]))
		if began := read.number(head[7]); began != 0 {
			info.Since = instantOfMicros(began)
		}
	}
	info.LastFence = read.number(head[5])
	info.Waiting = int(read.number(head[6])) //nolint:gosec // a length
	info.Holds = readHolds(holds, info.Now)
	for i := 8; i+1 < len(head); i += 2 {
		info.Waiters = append(info.Waiters, wakebelltype.GateTicket{Fence: read.number(head[i]), Process: processOf(head[i+1])})
	}
	for i := 0; i+1 < len(guard); i += 2 {
		if guard[i] == removedField {
			continue
		}
		info.Guard[guard[i]] = read.number(guard[i+1])
	}
	return info, read.err
}

// textsOf returns the texts of a list within a reply.
func textsOf(value any) ([]string, error) {
	list, ok := value.([]any)
	if !ok {
		return nil, fmt.Errorf("%w: %T, want a list", scripts.ErrReply, value)
	}
	return scripts.Texts(list)
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
func (s *Store) List(ctx context.Context, after string) iter.Seq2[wakebelltype.GateInfo, error] {
	return func(yield func(wakebelltype.GateInfo, error) bool) {
		scans := make([]paging.Scan, len(s.parts))
		for i, k := range s.parts {
			scans[i] = func(cursor uint64) ([]string, uint64, error) { return s.scan(ctx, k, cursor) }
		}
		for name, err := range paging.Names(after, scans...) {
			var info wakebelltype.GateInfo
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
func (s *Store) listed(ctx context.Context, name string) (wakebelltype.GateInfo, error) {
	info, err := s.show(ctx, name, 0)
	if errors.Is(err, wakebelltype.ErrWrongType) || errors.Is(err, scripts.ErrReply) {
		info, err = wakebelltype.GateInfo{Name: name, Err: err}, nil
	}
	if err != nil {
		return wakebelltype.GateInfo{}, err
	}
	info.Cursor = name
	return info, nil
}

// scan reads a page of the names of the gates of a part that are in use.
func (s *Store) scan(ctx context.Context, k Keyspace, cursor uint64) (names []string, next uint64, err error) {
	found, next, err := s.RDB.ZScan(ctx, k.Deadlines, cursor, "", layout.ScanPage).Result()
	if err != nil {
		return nil, 0, fmt.Errorf("gates in %q: %w", k.Deadlines, scripts.Wrap(ctx, nil, err))
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
	k := s.keys(name)
	keys := []string{k.state(name), k.stream(name), k.Deadlines, k.Presence, k.Mark}
	text, err := s.RunText(ctx, releaseScript, keys, name, k.Group, k.channels(), ticketText(gate.Ticket(fence)),
		wholeMicros(t.Lease), wholeMicros(t.Signal), wholeMicros(t.Presence))
	if err != nil {
		return false, fmt.Errorf("release gate %q: %w", name, err)
	}
	return text == "1", nil
}
