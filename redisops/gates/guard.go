package gates

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/wakebell/wakebell/messages/gate"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

var (
	// ErrFenceStale reports that a newer token was used for a resource: another
	// process has had the turn since. A token that is older than what the guard
	// remembers and does not have the turn gets the same error.
	ErrFenceStale = errors.New("fencing token is stale: a newer one was used")

	// ErrFenceRegressed reports that a token has the turn although a newer one was
	// used for the resource: the gate lost data, and its tokens stepped back.
	// Repair raises them.
	ErrFenceRegressed = errors.New("fencing tokens have stepped back: repair the gate")

	// ErrFenceUnknown reports that the token was never issued for a turn: it was
	// invented, or Redis has lost the turn.
	ErrFenceUnknown = errors.New("no turn has had this fencing token")
)

const (
	// GuardLife is how long a guard remembers a token. A token that was issued
	// earlier, and that the guard does not know, is accepted only while it has the
	// turn.
	GuardLife = time.Hour
	// GuardLifeElsewhere is GuardLife for a guard on another Redis, which does not
	// know which token has the turn.
	GuardLifeElsewhere = 7 * 24 * time.Hour

	// MaxFloor bounds the value to which tokens can be raised: far enough below
	// 2^53 that the gate does not exhaust them.
	MaxFloor = 9_000_000_000_000_000

	// removedField is the field of a guard in which lua/remove.lua stores the last
	// ticket. No resource has this name.
	removedField = ""
)

// Guard accepts a token for a resource and remembers it, unless a newer one was
// accepted before or the token was never issued for a turn. Elsewhere means that
// the gate is on another Redis; a token up to a day ahead of the clock may then
// have had a turn. Errors wrap [ErrFenceStale], [ErrFenceRegressed] or
// [ErrFenceUnknown].
func (s *Store) Guard(ctx context.Context, name, resource string, fence uint64, elsewhere bool) error {
	if err := CheckName(name); err != nil {
		return err
	}
	switch {
	case resource == "" || len(resource) > wakebelltype.MaxName:
		return fmt.Errorf("%w: resource: %d bytes, want 1 to %d", wakebelltype.ErrInvalid, len(resource), wakebelltype.MaxName)
	case fence == 0 || fence >= 1<<53:
		return fmt.Errorf("%w: fence: %d is not within 1 and 2^53", wakebelltype.ErrInvalid, fence)
	}
	life, mode := GuardLife, "0"
	if elsewhere {
		life, mode = GuardLifeElsewhere, "1"
	}
	k := s.keys(name)
	keys := []string{k.state(name), k.stream(name), k.guard(name), k.Mark}
	text, err := s.RunText(ctx, guardScript, keys, resource, ticketText(gate.Ticket(fence)), wholeMicros(life), mode)
	switch {
	case err != nil:
		return fmt.Errorf("guard %q of gate %q: %w", resource, name, err)
	case text == "":
		return fmt.Errorf("%w: guard: empty", scripts.ErrReply)
	}
	about := fmt.Sprintf("%q of gate %q: %d", resource, name, fence)
	switch text[0] {
	case 'a':
		return nil
	case 's':
		return fmt.Errorf("%w (%s after %s)", ErrFenceStale, about, text[1:])
	case 'r':
		return fmt.Errorf("%w (%s after %s)", ErrFenceRegressed, about, text[1:])
	case 'o':
		return fmt.Errorf("%w, or may have been: it is older than %v and does not have the turn (%s)", ErrFenceStale, life, about)
	case 'u':
		return fmt.Errorf("%w (%s, the last that had it is %s)", ErrFenceUnknown, about, text[1:])
	case 'f':
		return fmt.Errorf("%w: resource: the guard of gate %q remembers %s already", wakebelltype.ErrInvalid, name, text[1:])
	}
	return fmt.Errorf("%w: guard: %q", scripts.ErrReply, text)
}

// Repair raises the tokens of a gate above all tokens that its guard knows, and
// above floor, a token seen elsewhere, or 0. A turn with a lower token is revoked;
// lower tickets are removed. A token of the guard that is more than a day ahead of
// Redis's clock and this machine's, and above all issued tokens, does not come from
// a loss of data. It raises nothing and is cleared.
func (s *Store) Repair(ctx context.Context, name string, floor uint64, t gate.Terms) (wakebelltype.GateRepaired, error) {
	if err := CheckName(name); err != nil {
		return wakebelltype.GateRepaired{}, err
	}
	if floor > MaxFloor {
		return wakebelltype.GateRepaired{}, fmt.Errorf("%w: floor: %d, want at most %d", wakebelltype.ErrInvalid, floor, uint64(MaxFloor))
	}
	var all wakebelltype.GateRepaired
	for cursor, first := "0", true; cursor != ""; first = false {
		page, next, err := s.repairPage(ctx, name, floor, t, cursor)
		if err != nil {
			return all, fmt.Errorf("repair gate %q: %w", name, err)
		}
		if first {
			all.Before = page.Before
		}
		all.After = page.After
		all.Removed += page.Removed
		all.Cleared += page.Cleared
		cursor = next
	}
	return all, nil
}

// repairPage repairs with one page of the guard's tokens.
func (s *Store) repairPage(ctx context.Context, name string, floor uint64, t gate.Terms, cursor string) (wakebelltype.GateRepaired, string, error) {
	k := s.keys(name)
	keys := []string{k.state(name), k.stream(name), k.guard(name), k.Deadlines, k.Presence, k.Mark}
	list, err := s.RunList(ctx, 5, repairScript, keys, name, k.Group, k.channels(), ticketText(gate.Ticket(floor)),
		wholeMicros(t.Lease), wholeMicros(t.Signal), wholeMicros(t.Presence), time.Now().UnixMicro(), cursor)
	if err != nil {
		return wakebelltype.GateRepaired{}, "", err
	}
	reply, err := scripts.Texts(list)
	if err != nil {
		return wakebelltype.GateRepaired{}, "", err
	}
	read := numberReader{}
	r := wakebelltype.GateRepaired{
		Before: read.number(reply[0]), After: read.number(reply[1]), Removed: read.count(reply[2]), Cleared: read.count(reply[3]),
	}
	return r, reply[4], read.err
}

// Removal is the result of Remove.
type Removal struct {
	Existed bool
	InUse   bool   // the gate is held or has waiters, and was not changed
	Holder  uint64 // token of its turn; 0: none
	Waiting int    // number of waiters
	Last    uint64 // last token issued
}

// Remove removes a gate: its queue, its turn and the tokens of its guard. A gate
// that is held or has waiters is removed only with force: its turn is then lost,
// and the waiters take new tickets. Later tokens are above the last one, unless it
// had been raised to more than a day ahead of the clock.
func (s *Store) Remove(ctx context.Context, name string, force bool, t gate.Terms) (Removal, error) {
	if err := CheckName(name); err != nil {
		return Removal{}, err
	}
	k, mode := s.keys(name), "0"
	if force {
		mode = "1"
	}
	keys := []string{k.state(name), k.stream(name), k.guard(name), k.Deadlines, k.Presence, k.Mark, k.holds(name)}
	list, err := s.RunList(ctx, 4, removeScript, keys, name, k.Group, k.channels(), mode,
		wholeMicros(t.Lease), wholeMicros(t.Signal), wholeMicros(t.Presence), wholeMicros(GuardLife))
	if err != nil {
		return Removal{}, fmt.Errorf("remove gate %q: %w", name, err)
	}
	reply, err := scripts.Texts(list)
	if err != nil {
		return Removal{}, err
	}
	read := numberReader{}
	r := Removal{
		Existed: reply[0] != "n", InUse: reply[0] == "u",
		Holder: read.number(reply[1]), Waiting: read.count(reply[2]), Last: read.number(reply[3]),
	}
	return r, read.err
}

func (r *numberReader) count(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("%w: number %q", scripts.ErrReply, text)
	}
	return n
}
