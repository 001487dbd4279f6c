package durable

import (
	"bufio"
	"bytes"
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/alicebob/miniredis/v2/server"
)

// ranges answers ranges of large sorted sets: miniredis sorts all members for each. It
// learns what changed from the commands, and reads changed members again before it answers.
type ranges struct {
	sets     map[string]*ordered
	building bool
	// least is the number of members from which a set is ordered here.
	least int
}

// ordered has the members of a sorted set in order, in chunks.
type ordered struct {
	scores  map[string]float64
	chunks  [][]member
	changed map[string]struct{} // members whose scores are to be read again
}

type member struct {
	score float64
	name  string
}

const (
	orderedFrom = 1000
	chunkSize   = 512
)

func compare(a, b member) int {
	return cmp.Or(cmp.Compare(a.score, b.score), strings.Compare(a.name, b.name))
}

// wrote notes what a command that writes may change. An expired key is noticed by the
// number of its members.
func (r *ranges) wrote(name string, args []string) {
	if len(r.sets) == 0 || len(args) == 0 {
		if name == "FLUSHALL" || name == "FLUSHDB" {
			clear(r.sets)
		}
		return
	}
	set := r.sets[args[0]]
	switch name {
	case "ZADD", "ZREM", "ZINCRBY":
		if set != nil {
			for _, a := range args[1:] { // scores too, which are no members or unchanged ones
				set.changed[a] = struct{}{}
			}
			if len(set.changed) > len(set.scores)+orderedFrom {
				delete(r.sets, args[0]) // cheaper to read all again
			}
		}
	case "FLUSHALL", "FLUSHDB":
		clear(r.sets)
	case "HSET", "HDEL", "HINCRBY", "SET", "PEXPIRE":
		if name == "SET" {
			delete(r.sets, args[0])
		}
	default:
		for _, a := range args {
			delete(r.sets, a)
		}
	}
}

// answer answers a range, and reports whether it did.
func (s *Store) answer(c *server.Peer, name string, args []string) bool {
	r := &s.ranges
	if r.building || len(args) < 3 || name != "ZRANGEBYSCORE" && name != "ZCOUNT" && name != "ZRANGE" {
		return false
	}
	card, ok := s.inner(c, "ZCARD", args[0]).(int)
	if !ok || card < r.least {
		delete(r.sets, args[0])
		return false
	}
	q, ok := readQuery(name, args)
	if !ok {
		return false
	}
	set := r.sets[args[0]]
	if set != nil {
		s.refresh(c, args[0], set)
	}
	if set == nil || len(set.scores) != card {
		if set = s.build(c, args[0]); set == nil || len(set.scores) != card {
			return false
		}
		r.sets[args[0]] = set
	}
	q.write(c, set)
	return true
}

// inner asks the server on behalf of c, which may be a script; nil after an error.
func (s *Store) inner(c *server.Peer, args ...string) any {
	var b bytes.Buffer
	peer := server.NewPeer(bufio.NewWriter(&b))
	peer.Ctx = c.Ctx
	s.server.Dispatch(peer, args)
	peer.Flush()
	reply, err := server.ParseReply(bufio.NewReader(&b))
	if err != nil {
		return nil
	}
	return reply
}

func (s *Store) build(c *server.Peer, key string) *ordered {
	s.ranges.building = true
	defer func() { s.ranges.building = false }()
	reply, _ := s.inner(c, "ZRANGE", key, "0", "-1", "WITHSCORES").([]any)
	set := &ordered{scores: make(map[string]float64, len(reply)/2), changed: map[string]struct{}{}}
	var chunk []member
	for i := 0; i+1 < len(reply); i += 2 {
		score, known := scoreOf(reply[i+1])
		if !known {
			return nil
		}
		name, _ := reply[i].(string)
		m := member{score, name}
		set.scores[m.name] = score
		if chunk = append(chunk, m); len(chunk) == chunkSize {
			set.chunks, chunk = append(set.chunks, chunk), nil
		}
	}
	if len(chunk) > 0 {
		set.chunks = append(set.chunks, chunk)
	}
	return set
}

// scoreOf reads a score of a reply.
func scoreOf(reply any) (score float64, known bool) {
	text, _ := reply.(string)
	score, err := strconv.ParseFloat(text, 64)
	return score, err == nil
}

func (s *Store) refresh(c *server.Peer, key string, set *ordered) {
	for name := range set.changed {
		if before, ok := set.scores[name]; ok {
			set.remove(member{before, name})
		}
		if score, known := scoreOf(s.inner(c, "ZSCORE", key, name)); known {
			set.insert(member{score, name})
		}
	}
	clear(set.changed)
}

// place returns the chunk in which m is or would be, and its place there.
func (o *ordered) place(m member) (chunk, at int, found bool) {
	chunk, _ = slices.BinarySearchFunc(o.chunks, m, func(c []member, m member) int { return compare(c[len(c)-1], m) })
	if chunk == len(o.chunks) {
		return chunk, 0, false
	}
	at, found = slices.BinarySearchFunc(o.chunks[chunk], m, compare)
	return chunk, at, found
}

func (o *ordered) remove(m member) {
	chunk, at, found := o.place(m)
	if !found {
		return
	}
	delete(o.scores, m.name)
	if o.chunks[chunk] = slices.Delete(o.chunks[chunk], at, at+1); len(o.chunks[chunk]) == 0 {
		o.chunks = slices.Delete(o.chunks, chunk, chunk+1)
	}
}

func (o *ordered) insert(m member) {
	o.scores[m.name] = m.score
	chunk, at, _ := o.place(m)
	if chunk == len(o.chunks) { // behind all
		if chunk == 0 {
			o.chunks = append(o.chunks, []member{m})
			return
		}
		chunk--
		at = len(o.chunks[chunk])
	}
	c := slices.Insert(o.chunks[chunk], at, m)
	o.chunks[chunk] = c
	if len(c) > 2*chunkSize {
		o.chunks[chunk] = slices.Clone(c[:chunkSize])
		o.chunks = slices.Insert(o.chunks, chunk+1, slices.Clone(c[chunkSize:]))
	}
}

// rank returns how many members are before the first that is not before m.
func (o *ordered) rank(m member) int {
	chunk, at, _ := o.place(m)
	for _, c := range o.chunks[:chunk] {
		at += len(c)
	}
	return at
}

// query is a range: of ranks, or of scores.
type query struct {
	count, scores bool
	byScore       bool
	from, to      bound
	first, last   int // ranks as ZRANGE has them
	offset, limit int // of a range of scores; negative limit: all
}

type bound struct {
	score     float64
	inclusive bool
}

// readQuery reads the forms that Wakebell uses. Others are left to miniredis.
func readQuery(name string, args []string) (q query, ok bool) {
	q.limit = -1
	var err1, err2 error
	if name == "ZRANGE" {
		q.first, err1 = strconv.Atoi(args[1])
		q.last, err2 = strconv.Atoi(args[2])
	} else {
		q.byScore, q.count = true, name == "ZCOUNT"
		q.from, err1 = readBound(args[1])
		q.to, err2 = readBound(args[2])
	}
	if err1 != nil || err2 != nil || q.count && len(args) > 3 {
		return q, false
	}
	for rest := args[3:]; len(rest) > 0; {
		switch {
		case strings.EqualFold(rest[0], "WITHSCORES"):
			q.scores, rest = true, rest[1:]
		case strings.EqualFold(rest[0], "LIMIT") && q.byScore && len(rest) > 2:
			q.offset, err1 = strconv.Atoi(rest[1])
			q.limit, err2 = strconv.Atoi(rest[2])
			if err1 != nil || err2 != nil || q.offset < 0 {
				return q, false
			}
			rest = rest[3:]
		default:
			return q, false
		}
	}
	return q, true
}

// readBound reads a bound as miniredis does, for which an infinity is always included.
func readBound(s string) (bound, error) {
	number, exclusive := strings.CutPrefix(s, "(")
	score, err := strconv.ParseFloat(number, 64)
	return bound{score, !exclusive || math.IsInf(score, 0)}, err
}

// before returns how many members are before a lower bound or, with upper, not behind an
// upper one.
func (o *ordered) before(b bound, upper bool) int {
	if b.inclusive == upper { // behind all members with the score
		if math.IsInf(b.score, 1) {
			return len(o.scores)
		}
		return o.rank(member{math.Nextafter(b.score, math.Inf(1)), ""})
	}
	return o.rank(member{b.score, ""})
}

func (q query) write(c *server.Peer, set *ordered) {
	n := len(set.scores)
	var from, to int
	if q.byScore {
		from, to = set.before(q.from, false), set.before(q.to, true)
		to = max(from, to)
		if from = min(from+q.offset, to); q.limit >= 0 {
			to = min(to, from+min(q.limit, n))
		}
	} else {
		from, to = fromEnd(q.first, n), fromEnd(q.last, n)
		to = min(to+1, n)
		from = min(max(from, 0), max(to, 0))
		to = max(to, from)
	}
	if q.count {
		c.WriteInt(to - from)
		return
	}
	width := 1
	if q.scores {
		width = 2
	}
	c.WriteLen((to - from) * width)
	for _, chunk := range set.chunks {
		if from >= to {
			return
		}
		for _, m := range chunk[min(max(from, 0), len(chunk)):min(max(to, 0), len(chunk))] {
			c.WriteBulk(m.name)
			if q.scores {
				c.WriteFloat(m.score)
			}
		}
		from, to = max(from-len(chunk), 0), to-len(chunk)
	}
}

func fromEnd(rank, n int) int {
	if rank < 0 {
		return rank + n
	}
	return rank
}
