package redisops

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/wakebell/wakebell/messages/gate"
)

var (
	// ErrFenceStale says that a resource has seen a newer token: somebody else
	// has had the turn since, and has used it.
	ErrFenceStale = errors.New("fencing token is stale: a newer one was used")

	// ErrFenceRegressed says that a token has the turn and yet the resource has
	// seen a newer one: the gate lost data, and its tokens stepped back. Repair
	// lifts them.
	ErrFenceRegressed = errors.New("fencing tokens have stepped back: repair the gate")
)

// Guard accepts a token for a resource, and remembers it, unless a newer one
// was accepted before. Errors: [ErrFenceStale], [ErrFenceRegressed].
func (s *Gates) Guard(ctx context.Context, name, resource string, fence uint64) error {
	if err := CheckGate(name); err != nil {
		return err
	}
	switch {
	case resource == "" || len(resource) > MaxName:
		return fmt.Errorf("%w: resource: %d bytes, want 1 to %d", ErrInvalid, len(resource), MaxName)
	case fence == 0 || fence >= 1<<53:
		return fmt.Errorf("%w: fence: %d is not within 1 and 2^53", ErrInvalid, fence)
	}
	keys := []string{s.keys.state(name), s.keys.guard(name)}
	text, err := s.runText(ctx, gateGuardScript, keys, resource, ticketText(gate.Ticket(fence)))
	switch {
	case err != nil:
		return fmt.Errorf("guard %q of gate %q: %w", resource, name, err)
	case text == "":
		return fmt.Errorf("%w: guard: empty", errReply)
	case text[0] == 's':
		return fmt.Errorf("%w (%q of gate %q: %d after %s)", ErrFenceStale, resource, name, fence, text[1:])
	case text[0] == 'r':
		return fmt.Errorf("%w (%q of gate %q: %d after %s)", ErrFenceRegressed, resource, name, fence, text[1:])
	}
	return nil
}

// Repaired is what a repair did.
type Repaired struct {
	Before  uint64 // the last token that had been issued
	After   uint64 // tokens go on above this one
	Removed int    // tickets that were behind: their owners join again
}

// Repair lifts the tokens of a gate above all that its guard has seen, and
// above floor, which is one that was seen elsewhere, or 0. A turn below is
// taken away, tickets below are removed.
func (s *Gates) Repair(ctx context.Context, name string, floor uint64, t gate.Terms) (Repaired, error) {
	if err := CheckGate(name); err != nil {
		return Repaired{}, err
	}
	if floor >= 1<<53 {
		return Repaired{}, fmt.Errorf("%w: floor: %d is not below 2^53", ErrInvalid, floor)
	}
	k := s.keys
	keys := []string{k.state(name), k.stream(name), k.guard(name), k.Deadlines, k.Presence}
	list, err := s.runList(ctx, 3, gateRepairScript, keys, name, k.Group, k.channels(), ticketText(gate.Ticket(floor)),
		wholeMicros(t.Lease), wholeMicros(t.Signal), wholeMicros(t.Presence))
	if err != nil {
		return Repaired{}, fmt.Errorf("repair gate %q: %w", name, err)
	}
	reply, err := texts(list)
	if err != nil {
		return Repaired{}, err
	}
	read := numberReader{}
	r := Repaired{Before: read.number(reply[0]), After: read.number(reply[1])}
	removed, err := strconv.Atoi(reply[2])
	r.Removed = removed
	return r, errors.Join(read.err, err)
}
