package timers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

// Stored is a timer with everything that is stored of it but its lease: what an export
// has, and an import stores.
type Stored struct {
	ID  string // also one that is not valid UTF-8, of another program
	Key string // empty: none
	// Number orders the timers of a key that have the same instant; 0 to MaxNumber.
	Number int64

	At    time.Time // the instant for which the timer was scheduled
	Never bool      // it has an infinite instant; At and Due are zero
	// Due is the instant at which the timer can be claimed: that of the next attempt after
	// a failure, and otherwise At.
	Due time.Time

	Claims, Failures int
	LastError        string
	FirstScheduled   time.Time // by Debounce; zero for others

	Payload []byte
	// Fault says why no node can handle the timer; empty: it can. The payload may be
	// missing then.
	Fault string
}

// LastInstant is the latest instant of a timer.
var LastInstant = scripts.LastInstant

const (
	// MaxNumber is the highest Stored.Number.
	MaxNumber = 999_999_999_999_999
	// MaxCount is the highest count of a lease record.
	MaxCount = 999_999_999
	// MaxError is the highest length of Stored.LastError, in bytes.
	MaxError = scripts.MaxReason

	dumpPage = layout.ScanPage
)

// place is the place of a timer among those of its key, as lua/keys.lua has it.
func (s *Stored) place() string {
	if s.Key == "" {
		return ""
	}
	const latest = int64(9.9e17)
	micros := latest
	if !s.Never {
		micros = min(max(s.At.UnixMicro(), 0), latest)
	}
	return fmt.Sprintf("%018d%015d", micros, s.Number)
}

// score is the instant at which the timer is stored.
func (s *Stored) score() string {
	if s.Never {
		return "+inf"
	}
	return scripts.ScoreText(s.Due)
}

// tried reports whether the timer was claimed before: a snooze leaves its reason and no attempt.
func (s *Stored) tried() bool { return s.Claims > 0 || s.Failures > 0 || s.LastError != "" }

// record is the lease record of the timer, as lua/prelude.lua writes it.
func (s *Stored) record() string {
	if s.Never || !s.tried() && s.FirstScheduled.IsZero() {
		return ""
	}
	at, first := scripts.ScoreText(s.At), ""
	if !s.FirstScheduled.IsZero() {
		first = "~" + scripts.ScoreText(s.FirstScheduled)
	}
	return fmt.Sprintf("w:%d:%d:%s:%s:%s%s:%s", s.Claims, s.Failures, at, s.score(), at, first, s.LastError)
}

// Scan returns an iterator over all timers of a physical topic, in no order, in steps of
// at most about 200 timers and 1 MiB. A timer that exists throughout is yielded once, one
// that is scheduled or removed meanwhile once or not at all, except that an id which was
// removed and scheduled again may be yielded twice. After an error the iterator ends. It
// is ErrOtherServer if another server has taken the topic over meanwhile, because the
// position of a scan is one in the tables of a server.
func (s *Timers) Scan(ctx context.Context, topic string) iter.Seq2[Stored, error] {
	return func(yield func(Stored, error) bool) {
		seen := recent{}
		for page, err := range s.scanIDs(ctx, topic) {
			page = slices.DeleteFunc(page, seen.add)
			for err == nil && len(page) > 0 {
				var found []Stored
				var read int
				if found, read, err = s.dump(ctx, topic, page[:min(len(page), dumpPage)]); err != nil {
					break
				}
				for _, t := range found {
					if !yield(t, nil) {
						return
					}
				}
				page = page[read:]
			}
			if err != nil {
				yield(Stored{}, fmt.Errorf("read the timers of %q: %w", topic, err))
				return
			}
		}
	}
}

// scanIDs returns an iterator over pages of the ids of a physical topic, of which some
// may occur several times.
func (s *Timers) scanIDs(ctx context.Context, topic string) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		// A position of ZSCAN is of use only to the process that returned it. The text of
		// this script is unknown to any other: after a failover or a restart, or in a slot
		// that has moved to another server, Redis answers that it does not have the script.
		script := redis.NewScript("--" + rand.Text() + "\nreturn redis.call('ZSCAN',KEYS[1],ARGV[1],'COUNT',ARGV[2])")
		key := s.keys.Of(topic).Timeline
		for cursor, first := "0", true; first || cursor != "0"; first = false {
			run := script.EvalSha
			if first {
				run = script.Eval
			}
			var page []string
			next := ""
			err := s.Again(ctx, func() error {
				reply, err := run(ctx, s.RDB, []string{key}, cursor, dumpPage).Slice()
				if redis.HasErrorPrefix(err, "NOSCRIPT") {
					return ErrOtherServer
				}
				if err != nil {
					return scripts.Wrap(ctx, []string{key}, err)
				}
				next, page, err = readScan(reply)
				return err
			})
			if cursor = next; !yield(page, err) || err != nil {
				return
			}
		}
	}
}

// ErrOtherServer ends a scan whose position is lost.
var ErrOtherServer = errors.New("redis was restarted, another server has taken its place, or its scripts were flushed; begin again")

// readScan reads the reply of ZSCAN: where to go on, and members with their scores.
func readScan(reply []any) (next string, members []string, err error) {
	if len(reply) != 2 {
		return "", nil, scripts.ErrReply
	}
	next, ok := reply[0].(string)
	list, isList := reply[1].([]any)
	if !ok || !isList {
		return "", nil, scripts.ErrReply
	}
	texts, err := scripts.Texts(list)
	for pair := range slices.Chunk(texts, 2) {
		members = append(members, pair[0])
	}
	return next, members, err
}

// dump reads the first of some timers, and returns how many of the ids it has read.
func (s *Timers) dump(ctx context.Context, topic string, ids []string) (found []Stored, read int, err error) {
	k := s.keys.Of(topic)
	args := []any{s.maxPayload(), layout.BatchBytes}
	for _, id := range ids {
		args = append(args, id)
	}
	var list []any
	err = s.orKeyless(func() (err error) {
		list, err = s.RunList(ctx, 1, dumpScript, []string{k.Timeline, k.Payloads, k.Leases, s.orderKeys(k)[0]}, args...)
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	texts, err := scripts.Texts(list)
	if err != nil {
		return nil, 0, err
	}
	if read, err = strconv.Atoi(texts[0]); err != nil || read < 1 || read > len(ids) {
		return nil, 0, scripts.ErrReply
	}
	for v := texts[1:]; len(v) >= 6; v = v[6:] {
		t, err := s.describeStored(v)
		if err != nil {
			return nil, 0, err
		}
		found = append(found, t)
	}
	return found, read, nil
}

// describeStored reads a timer of the reply of lua/dump.lua.
func (s *Timers) describeStored(v []string) (Stored, error) {
	t, err := describe(v[0], v[1], v[2], v[3], math.Inf(-1)) // every lease counts as one that runs
	if err != nil {
		return Stored{}, err
	}
	stored := Stored{
		ID: t.ID, Key: t.Key, At: t.Activation, Due: t.Activation, Never: t.NeverDue,
		Claims: t.Claims, Failures: t.Failures, LastError: t.LastError, FirstScheduled: t.FirstScheduled, Payload: []byte(v[5]),
	}
	if !t.Running && stored.tried() {
		stored.Due = t.Due
	}
	if epoch := time.Unix(0, 0).UTC(); !t.NeverDue && stored.At.Before(epoch) { // a score below 0, or -inf
		stored.At, stored.Due = epoch, epoch
	}
	if t.Key != "" {
		stored.Number, _ = strconv.ParseInt(v[3][instantSize:instantSize+15], 10, 64)
	}
	if stored.Fault = layout.FaultOf(t.ID); v[5] == "" && v[4] != "0" {
		stored.Fault = fmt.Sprintf("payload: %s bytes, at most %d are read", v[4], s.maxPayload())
	}
	return stored, nil
}

// PutMode says what Put does with a timer that exists.
type PutMode string

// The modes of Put.
const (
	PutKeep    PutMode = "k" // it stays as it is
	PutReplace PutMode = "r" // it is replaced, also while a handler has it
	PutTry     PutMode = "d" // nothing is written
)

// Put stores timers in a physical topic, at most 200 and about 1 MiB, and reports for each
// whether one with its id existed. Their ids must differ. It may be repeated.
func (s *Timers) Put(ctx context.Context, topic string, mode PutMode, list []Stored) (existed []bool, err error) {
	return s.WithFence(nil).Put(ctx, topic, mode, list)
}

// Put is [Timers.Put] behind the fence.
func (s Fenced) Put(ctx context.Context, topic string, mode PutMode, list []Stored) (existed []bool, err error) {
	k := s.keys.Of(topic)
	args := make([]any, 0, 1+7*len(list))
	args = append(args, string(mode))
	for i := range list {
		t := &list[i]
		held := "0"
		if t.Key != "" && t.tried() {
			held = "1"
		}
		args = append(args, t.ID, t.score(), t.Payload, t.record(), t.Key, t.place(), held)
	}
	keyed := slices.ContainsFunc(list, func(t Stored) bool { return t.Key != "" })
	var codes string
	err = s.orKeyless(func() (err error) {
		order := s.orderKeys(k)
		if keyed {
			order = k.order()
		}
		codes, err = s.runText(ctx, putScript, topic, append([]string{k.Timeline, k.Payloads, k.Leases, k.Hint}, order...), args...)
		return err
	})
	if err == nil && (len(codes) != len(list) || strings.Trim(codes, "se") != "") {
		err = scripts.ErrReply
	}
	if err != nil {
		return nil, fmt.Errorf("store timers of %q: %w", topic, err)
	}
	if mode != PutTry {
		s.Remember(ctx, topic)
	}
	existed = make([]bool, len(codes))
	for i := range codes {
		existed[i] = codes[i] == 'e'
	}
	return existed, nil
}

// recent knows the ids that were added last, at least recentIDs of them. A scan repeats
// an id only if the table of the topic has become smaller meanwhile, and then one of those
// that the part of the table has which it reads.
type recent struct{ young, older map[uint64]struct{} }

const recentIDs = 1 << 16

// add adds an id, and reports whether it is known.
func (r *recent) add(id string) bool {
	h := maphash.String(seed, id)
	_, young := r.young[h]
	_, older := r.older[h]
	if young || older {
		return true
	}
	if r.young == nil || len(r.young) >= recentIDs {
		r.young, r.older = map[uint64]struct{}{}, r.young
	}
	r.young[h] = struct{}{}
	return false
}
