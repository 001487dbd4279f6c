package fleet

import (
	"context"
	"errors"
	"hash/fnv"
	"strconv"
	"strings"
	"time"
)

// How handlers end.
const (
	acks   = "acks"
	fails  = "fails"
	panics = "panics"
	ends   = "ends with its context"
)

var errFailed = errors.New("failed")

// draw returns a number below n that depends on the plan and a name alone, so that it does not
// depend on the order in which goroutines run.
func (p *Plan) draw(name string, n int) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(strconv.FormatUint(p.Seed, 10) + name)) // it returns no error
	return int(h.Sum64() >> 8 % uint64(n))                        //nolint:gosec // below n
}

// takes returns how long a handler takes.
func (p *Plan) takes(name string) time.Duration {
	switch n := p.draw(name, 100); {
	case n < 45:
		return 0
	case n < 55:
		return time.Second
	case n < 75:
		return time.Duration(1+p.draw(name+"for", 500)) * time.Millisecond
	default: // its lease is extended
		return time.Duration(1+p.draw(name+"for", 9000)) * time.Millisecond
	}
}

// handle is the handler of all topics and of the queue. Of subscribers, which name the node that they
// have their leases from, one in five goes on when its context has ended.
func (f *fleet) handle(ctx context.Context, subject, body string, attempt int, at, number, of string) error {
	name := body + number + "#" + strconv.Itoa(attempt)
	r, stop := f.begin(ctx, subject, body, attempt, at)
	r.number, r.of = number, of
	defer stop()
	r.goesOn = of != "" && f.plan.draw(name+"goes on", 5) == 0
	takes, errand := f.plan.takes(name), strings.HasPrefix(subject, errands)
	if errand {
		takes = errandTakes
	}
	if takes > 0 {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			if !r.goesOn {
				f.finish(ctx, r, ends)
				return ctx.Err()
			}
			<-time.After(time.Duration(f.plan.draw(name+"for longer", 8000)) * time.Millisecond)
		}
	}
	switch n := f.plan.draw(name+"ends", 100); {
	case attempt > 5 || n < 80 || errand:
		f.finish(ctx, r, acks)
		return nil
	case n < 95:
		f.finish(ctx, r, fails)
		return errFailed
	default:
		f.finish(ctx, r, panics)
		panic("as the plan says")
	}
}
