package gates

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/messages/gate"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Store is the store of gates, FIFO locks with fencing tokens, on one Redis. It
// fulfils the contract of package gate.
type Store struct {
	scripts.Runner            // Retry is zero, because the gates actor retries itself
	parts          []Keyspace // on a Cluster several, elsewhere one
	log            *slog.Logger
}

// New returns the store that keeps its gates under keys; empty names take their
// defaults. The caller owns rdb. Errors wrap [wakebelltype.ErrInvalid] or
// [wakebelltype.ErrUnsupported]. A nil log discards messages.
func New(rdb redis.UniversalClient, keys wakebelltype.GateKeys, log *slog.Logger) (*Store, error) {
	if rdb == nil {
		return nil, fmt.Errorf("%w: rdb is nil", wakebelltype.ErrInvalid)
	}
	keyspace, err := NewKeyspace(keys)
	if err != nil {
		return nil, err
	}
	parts, err := keyspace.of(rdb)
	if err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Store{Runner: scripts.Runner{RDB: rdb}, parts: parts, log: log}, nil
}

// Part returns the part of a gate.
func (s *Store) Part(name string) int { return sharding.ShardOf(name, "", len(s.parts)) }

// keys returns the keyspace of a gate.
func (s *Store) keys(name string) Keyspace { return s.parts[s.Part(name)] }

// CheckName checks the name of a gate; the error wraps [wakebelltype.ErrInvalid].
func CheckName(name string) error {
	if name == "" || len(name) > wakebelltype.MaxName {
		return fmt.Errorf("%w: gate: %d bytes, want 1 to %d", wakebelltype.ErrInvalid, len(name), wakebelltype.MaxName)
	}
	return nil
}

// Exchange runs one step of a process at a gate.
func (s *Store) Exchange(ctx context.Context, r *gate.Request) (*gate.Reply, error) {
	if err := CheckName(r.Gate); err != nil {
		return nil, err
	}
	k := s.keys(r.Gate)
	keys := []string{k.state(r.Gate), k.stream(r.Gate), k.exchange(r.Gate, r.Process), k.Deadlines, k.Presence, k.Mark}
	codes := make([]byte, len(r.Ops))
	args := make([]any, 0, 10+len(r.Ops))
	args = append(args, r.Gate, k.Group, r.Process, k.channels(), r.Sequence, ticketText(r.Floor),
		wholeMicros(r.Lease), wholeMicros(r.Signal), wholeMicros(r.Presence), "")
	for i, op := range r.Ops {
		codes[i] = byte(op.Kind)
		if op.Kind.Gives() {
			args = append(args, ticketText(op.Ticket))
		} else {
			args = append(args, op.Number)
		}
	}
	args[9] = string(codes)
	text, err := s.RunText(ctx, exchangeScript, keys, args...)
	if err != nil {
		return nil, fmt.Errorf("gate %q: %w", r.Gate, err)
	}
	return readReply(text, r.Ops)
}

func readReply(text string, ops []gate.Op) (*gate.Reply, error) {
	lines := strings.Split(text, "\n")
	const head = 5
	if len(lines) != head+len(ops) {
		return nil, fmt.Errorf("%w: %d lines, want %d", scripts.ErrReply, len(lines), head+len(ops))
	}
	numbers := make([]uint64, len(lines))
	for i, line := range lines {
		n, err := strconv.ParseUint(line, 10, 63)
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %q", scripts.ErrReply, i, line)
		}
		numbers[i] = n
	}
	reply := &gate.Reply{
		Now: instantOfMicros(numbers[0]), Held: gate.Ticket(numbers[1]), Remaining: microseconds(numbers[2]), More: numbers[3] == 1,
		Since: gate.Ticket(numbers[4]),
	}
	reply.Done = make([]gate.Done, len(ops))
	for i, op := range ops {
		if op.Kind.Gives() {
			reply.Done[i].Had = numbers[head+i] == 1
		} else {
			reply.Done[i].Ticket = gate.Ticket(numbers[head+i])
		}
	}
	return reply, nil
}

// Heartbeat reports that a process is alive at the gates of a part, and extends turns at
// them, at most 500.
func (s *Store) Heartbeat(ctx context.Context, b *gate.Heartbeat) (*gate.HeartbeatReply, error) {
	k := s.parts[b.Part]
	keys := []string{k.Presence, k.Deadlines}
	args := []any{b.Process, wholeMicros(b.Presence), wholeMicros(b.Lease)}
	for _, turn := range b.Turns {
		keys = append(keys, k.state(turn.Gate), k.stream(turn.Gate))
		args = append(args, ticketText(turn.Ticket), turn.Gate)
	}
	list, err := s.RunList(ctx, 3, heartbeatScript, keys, args...)
	if err != nil {
		return nil, fmt.Errorf("heartbeat: %w", err)
	}
	reply, err := scripts.Texts(list)
	if err != nil {
		return nil, err
	}
	now, err := strconv.ParseInt(reply[0], 10, 64)
	if err != nil || len(reply[2]) != len(b.Turns) {
		return nil, fmt.Errorf("%w: heartbeat: %q, %d codes", scripts.ErrReply, reply[0], len(reply[2]))
	}
	answer := &gate.HeartbeatReply{Now: time.UnixMicro(now), Lapsed: reply[1] == "1", Overdue: reply[3:], Lost: make([]bool, len(b.Turns))}
	for i, letter := range []byte(reply[2]) {
		answer.Lost[i] = letter == 'l'
	}
	return answer, nil
}

// Places returns the state of tickets, at most 500, of gates of one part.
func (s *Store) Places(ctx context.Context, tickets []gate.Held) ([]gate.Place, error) {
	var keys []string
	var args []any
	for _, t := range tickets {
		k := s.keys(t.Gate)
		keys = append(keys, k.state(t.Gate), k.stream(t.Gate))
		args = append(args, ticketText(t.Ticket))
	}
	text, err := s.RunText(ctx, placesScript, keys, args...)
	if err != nil {
		return nil, fmt.Errorf("places: %w", err)
	}
	if len(text) != len(tickets) {
		return nil, fmt.Errorf("%w: %d codes, want %d", scripts.ErrReply, len(text), len(tickets))
	}
	places := make([]gate.Place, len(text))
	for i, letter := range []byte(text) {
		places[i] = gate.Place(letter)
	}
	return places, nil
}

// Listen delivers the signals for the process until ctx ends, over one connection.
// It calls subscribed after each confirmed (re)subscription, because signals may
// have been missed. The error is ctx's, or wraps [wakebelltype.ErrChannelDenied].
func (s *Store) Listen(ctx context.Context, process string, subscribed func(), deliver func(gate.Signal)) error {
	l := scripts.Listener{
		RDB: s.RDB, Log: s.log, Channels: []string{s.parts[0].channels() + process},
		Confirmed: func(string) error {
			subscribed()
			return nil
		},
		Received: func(_, text string) error {
			if signal, ok := readSignal(text); ok {
				deliver(signal)
			}
			return nil
		},
	}
	return l.Run(ctx)
}

// readSignal reads a signal that lua/turns.lua publishes; it ignores other
// messages.
func readSignal(text string) (gate.Signal, bool) {
	first, rest, _ := strings.Cut(text, " ")
	second, name, ok := strings.Cut(rest, " ")
	read := numberReader{}
	s := gate.Signal{Gate: name, Ticket: gate.Ticket(read.number(first)), Until: instantOfMicros(read.number(second))}
	return s, ok && name != "" && read.err == nil
}

func instantOfMicros(us uint64) time.Time {
	return time.UnixMicro(int64(min(us, 1<<53))) //nolint:gosec // bounded
}

func ticketText(t gate.Ticket) string { return strconv.FormatUint(uint64(t), 10) }

func wholeMicros(d time.Duration) int64 { return max(d, 0).Microseconds() }

func microseconds(us uint64) time.Duration {
	return time.Duration(min(us, uint64(scripts.MaxMicros))) * time.Microsecond
}
