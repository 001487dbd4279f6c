package joins

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/progress"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// maxReason bounds the reason of a part that became a dead letter, in bytes.
const maxReason = 1 << 10

// The codes of lua/settle.lua.
var codes = map[wakebelltype.End]string{
	wakebelltype.EndDone: "d", wakebelltype.EndDead: "x", wakebelltype.EndCancelled: "c", wakebelltype.EndMissing: "m",
}

// text returns an end as lua/settle.lua takes it.
func (e *End) text() string {
	code := codes[e.End]
	switch {
	case code == "":
		return codes[wakebelltype.EndMissing]
	case e.End == wakebelltype.EndDead:
		return code + text.Cut(text.Valid(e.Reason), maxReason)
	case e.Result != nil:
		return fmt.Sprintf("%s%d %s %s", code, e.Result.Attempt, scripts.ScoreText(e.Result.Activation), e.Result.Payload)
	default:
		return code
	}
}

// read reads an end as lua/settle.lua stores it. One that cannot be read is missing.
func (e *End) read(stored string) {
	e.End = wakebelltype.EndMissing
	words := strings.SplitN(stored, " ", 3)
	if len(words) != 3 {
		return
	}
	e.At = scripts.ReadInstant(words[1])
	for end, code := range codes {
		if code == words[0] {
			e.End = end
		}
	}
	switch rest := words[2]; {
	case e.End == wakebelltype.EndDead:
		e.Reason = rest
	case e.End == wakebelltype.EndDone && rest != "":
		parts := strings.SplitN(rest, " ", 3)
		if len(parts) != 3 {
			return
		}
		attempt, bad := strconv.Atoi(parts[0])
		activation, worse := scripts.ReadScore(parts[1])
		if bad == nil && worse == nil {
			e.Result = &progress.Result{At: e.At, Attempt: attempt, Activation: scripts.Instant(activation), Payload: []byte(parts[2])}
		}
	}
}

// state is what the hash of a join has besides its counts.
type state struct {
	wakebelltype.Join
	ran    bool // its timer was run, because all parts had ended
	rank   int  // of the part at which the audit goes on
	audits int  // audits of all parts
}

// Head reads a join, and returns it with its name. The error wraps
// [wakebelltype.ErrNotFound].
func (s *Store) Head(ctx context.Context, r Ref) (Ref, wakebelltype.Join, error) {
	r, head, err := s.head(ctx, r)
	return r, head.Join, err
}

func (s *Store) head(ctx context.Context, r Ref) (_ Ref, head state, err error) {
	if err := check(r); err != nil {
		return r, head, err
	}
	keys := s.keys(r)
	var fields *redis.MapStringStringCmd
	var parts *redis.IntCmd
	err = s.timers.Again(ctx, func() error {
		_, err := s.timers.RDB.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			fields, parts = pipe.HGetAll(ctx, keys[0]), pipe.ZCard(ctx, keys[1])
			return nil
		})
		return scripts.Wrap(ctx, keys, err)
	})
	if err != nil {
		return r, head, s.failed(r, err)
	}
	found := fields.Val()
	if found["name"] == "" || r.Name != "" && r.Name != found["name"] {
		return r, head, noJoin(r)
	}
	r.Name = found["name"]
	number := func(field string) int64 {
		n, _ := strconv.ParseInt(found[field], 10, 64) // 0: absent, or broken
		return max(n, 0)
	}
	head.Join = wakebelltype.Join{
		Open: found["state"] == "o", Parts: parts.Val(),
		Done: number("d"), Dead: number("x"), Cancelled: number("c"), Missing: number("m"),
	}
	head.ran, head.rank, head.audits = found["ran"] != "", int(number("rank")), int(number("audits"))
	return r, head, nil
}

// Page is a part of a listing.
type Page struct {
	Ends []End // in the order in which the parts were added
	Next int   // how many parts come before the next page; 0: this is the last one
}

// Page reads parts of a join, of which from come before. A page looks at up to limit parts, 1
// to 1,000, and has about 1 MiB. With open, it has those only that have not ended. The error
// wraps [wakebelltype.ErrNotFound] if there is no such join.
func (s *Store) Page(ctx context.Context, r Ref, from, limit int, open bool) (page Page, err error) {
	if err := check(r); err != nil {
		return page, err
	}
	if limit < 1 || limit > layout.MaxPage || from < 0 {
		return page, fmt.Errorf("%w: limit: %d, want 1 to %d", wakebelltype.ErrInvalid, limit, layout.MaxPage)
	}
	list, err := s.timers.RunList(ctx, 0, pageScript, s.keys(r), r.Name, from, limit, layout.BatchBytes, flag(open))
	if err != nil {
		return page, s.failed(r, err)
	}
	values, err := scripts.Texts(list)
	switch {
	case err != nil:
		return page, s.failed(r, err)
	case len(values) == 0:
		return page, noJoin(r)
	case len(values)%4 != 2:
		return page, s.failed(r, scripts.ErrReply)
	}
	if values[1] != "" {
		if page.Next, err = strconv.Atoi(values[1]); err != nil {
			return page, s.failed(r, scripts.ErrReply)
		}
	}
	for v := values[2:]; len(v) >= 4; v = v[4:] {
		rank, bad := strconv.Atoi(v[0])
		e := End{Rank: rank, added: scripts.ReadInstant(v[2])}
		p, ok := partOf(v[1])
		if !ok || bad != nil { // of another program
			p = wakebelltype.Part{ID: v[1]}
		}
		e.Part = p
		if v[3] != "" {
			e.read(v[3])
		}
		page.Ends = append(page.Ends, e)
	}
	return page, nil
}

// timerOf returns the timer of a join; nil: it has ended, or is another one.
func (s *Store) timerOf(ctx context.Context, r Ref) (*timers.Timer, error) {
	t, err := s.topics.Get(ctx, r.Topic, r.ID)
	if err != nil {
		return nil, ignoreAbsent(err)
	}
	env, _ := envelope.Decode(t.Payload) // one that is malformed has no headers
	if nameOf(env.Headers) != r.Name {
		return nil, nil
	}
	return &t, nil
}

func ignoreAbsent(err error) error {
	if errors.Is(err, wakebelltype.ErrNotFound) {
		return nil
	}
	return err
}
