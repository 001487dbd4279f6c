package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/loglimit"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// DefaultKey is the default of AuditConfig.Key.
const DefaultKey = "timers_audit"

const (
	maxEntries  = 10_000 // of the stream; Redis drops the oldest in batches
	callerShare = 1000   // of them, after which a caller evicts its own oldest first
	mergeWindow = time.Minute
	writeLimit  = time.Second // of one write, which an operation waits for

	maxCaller = 256
	maxDetail = 1024
	maxError  = 256
)

// Log is the audit of one Redis. A nil Log records nothing.
type Log struct {
	scripts.Runner // Retry is of listings

	cfg    wakebelltype.AuditConfig
	origin string // of this process
	log    *slog.Logger

	most, share int // maxEntries and callerShare, but in tests

	failed atomic.Int64
	lines  loglimit.Limiter
}

// Open returns the audit on rdb, which the caller owns. It does not call Redis. The
// error wraps [wakebelltype.ErrInvalid]. A nil log discards messages.
func Open(rdb redis.UniversalClient, cfg wakebelltype.AuditConfig, log *slog.Logger) (*Log, error) {
	if len(cfg.Caller) > maxCaller {
		return nil, fmt.Errorf("%w: audit caller: %d bytes, at most %d", wakebelltype.ErrInvalid, len(cfg.Caller), maxCaller)
	}
	if len(cfg.Key) > wakebelltype.MaxName {
		return nil, fmt.Errorf("%w: audit key: %d bytes, at most %d", wakebelltype.ErrInvalid, len(cfg.Key), wakebelltype.MaxName)
	}
	if cfg.Key == "" {
		cfg.Key = DefaultKey
	}
	if cfg.Caller == "" {
		cfg.Caller = userAtHost()
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Log{
		Runner: scripts.Runner{RDB: rdb}, cfg: cfg, origin: thisProcess(), log: log, most: maxEntries, share: callerShare,
		lines: loglimit.Limiter{Every: time.Minute},
	}, nil
}

// Key returns the key of the stream.
func (l *Log) Key() string { return l.cfg.Key }

// Failed returns how many entries could not be written since Open.
func (l *Log) Failed() int64 {
	if l == nil {
		return 0
	}
	return l.failed.Load()
}

// Result is what an operation did.
type Result struct {
	Count  int64
	Detail string
	Err    error
}

// One is the Result of an operation on a whole, such as a topic.
func One(detail string, err error) Result {
	if err != nil {
		return Result{Detail: detail, Err: err}
	}
	return Result{Count: 1, Detail: detail}
}

// Details joins names and values to a text: "reason: the bank is down". Empty values
// are left out.
func Details(pairs ...string) string {
	var all []string
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			all = append(all, pair[0]+": "+pair[1])
		}
	}
	return strings.Join(all, ", ")
}

// Record writes the entry of an operation on what has this name. An operation that
// failed before it changed anything is not recorded. A failure of the write is
// counted, and logged once a minute.
func (l *Log) Record(ctx context.Context, operation wakebelltype.AuditOperation, name string, r Result) {
	if l == nil || l.cfg.Off || skipped(ctx) || (r.Err != nil && r.Count == 0) {
		return
	}
	// The operation is done, also if its context has ended meanwhile.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeLimit)
	defer cancel()
	if err := l.write(ctx, operation, name, r); err != nil {
		l.failed.Add(1)
		if skipped, ok := l.lines.Allow(""); ok {
			l.log.WarnContext(ctx, "audit entry not written", "operation", string(operation), "name", name, "err", err, "skipped", skipped)
		}
	}
}

// Report writes the entry of a change on what has this full name. The error wraps
// [wakebelltype.ErrInvalid]; a failure of the write is treated as in Record.
func (l *Log) Report(ctx context.Context, full string, c wakebelltype.Change) error {
	row := find(c.Operation)
	switch {
	case row == nil || !row.reported:
		return fmt.Errorf("%w: operation: %q, want one that callers record", wakebelltype.ErrInvalid, text.Clip(string(c.Operation), wakebelltype.MaxName))
	case c.Count < 0:
		return fmt.Errorf("%w: count: %d, want at least 0", wakebelltype.ErrInvalid, c.Count)
	}
	r := Result{Count: c.Count, Detail: c.Detail}
	if c.Error != "" {
		r.Err = errors.New(c.Error)
	}
	l.Record(ctx, c.Operation, full, r)
	return nil
}

func (l *Log) write(ctx context.Context, operation wakebelltype.AuditOperation, name string, r Result) error {
	row := find(operation)
	if row == nil {
		return fmt.Errorf("%w: operation %q is not in the table", wakebelltype.ErrInvalid, operation)
	}
	merged := row.merged
	if merged == apart && r.Count == 0 {
		merged = sameName // an operation that changed nothing
	}
	failure := ""
	if r.Err != nil {
		failure = text.Cut(r.Err.Error(), maxError)
	}
	by := l.caller(ctx)
	_, err := scripts.Runner{RDB: l.RDB}.RunText(ctx, recordScript, []string{l.cfg.Key}, l.most, l.share, mergeWindow.Milliseconds(), string(merged),
		string(operation), name, text.Cut(by.name, maxCaller), string(by.via), by.from,
		text.Cut(r.Detail, maxDetail), failure, strconv.FormatInt(r.Count, 10), callOf(ctx, operation, name))
	return err
}

// callOf identifies the call of an entry: by the idempotency key of ctx or, because
// go-redis may repeat the command, by a number that no other has.
func callOf(ctx context.Context, operation wakebelltype.AuditOperation, name string) string {
	key := messages.Once(ctx)
	if key == "" {
		return strconv.FormatUint(rand.Uint64(), 36) //nolint:gosec // it is no secret
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{messages.Principal(ctx), key, string(operation), name}, "\x00")))
	return hex.EncodeToString(sum[:8])
}
