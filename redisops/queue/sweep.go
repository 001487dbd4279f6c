package queue

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

const (
	healSteps = 100 // calls of each script of one RemoveOrphans

	lostFirst = 10        // tokens of the first page: messages may be large
	lostMost  = 100       // tokens of a page, when messages turn out small
	lostBytes = 256 << 10 // bytes that a page may read before pages get smaller
)

// lostLife is the deadline of a message whose own one was lost: the default visibility
// timeout, which Python consumers have as well. A consumer that lives extends it before.
const lostLife = 5 * time.Minute

// RemoveOrphans synchronizes the records of dead letters with their list, from
// which Python programs remove and to which they add. It removes records of absent dead
// letters, of any number: the list alone has the payloads. It also gives messages whose
// deadline was lost, by eviction or a partial restore, a new one. It bounds its work; the
// next call continues.
func (s *Source) RemoveOrphans(ctx context.Context) (swept exchange.Swept, err error) {
	for range healSteps {
		values, n, err := sweepStep(0, func() ([]any, error) {
			return s.timers.RunList(ctx, 2, healScript, []string{s.keys.dlq, s.keys.places, s.keys.records})
		})
		if err != nil {
			return swept, fmt.Errorf("heal queue %q: %w", s.Name(), err)
		}
		if swept.Removed += n; values[1] == "0" {
			break
		}
	}
	swept.Mended, err = s.mendLeases(ctx)
	if err != nil {
		err = fmt.Errorf("lost leases of queue %q: %w", s.Name(), err)
	}
	return swept, err
}

// mendLeases gives messages whose deadline was lost a new one, and returns their number.
// Messages that are delivered at most once have no token, by which it finds those.
func (s *Source) mendLeases(ctx context.Context) (mended int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := []string{s.keys.tokens, s.keys.deadlines, s.keys.processing, s.keys.gone}
	for page, step := lostFirst, 0; step < healSteps; step++ {
		if s.cursor == "" {
			s.cursor = "0"
		}
		values, n, err := sweepStep(2, func() ([]any, error) {
			return s.timers.RunList(ctx, 3, lostScript, keys, s.cursor, page, lostLife.Milliseconds())
		})
		if err != nil {
			return mended, err
		}
		mended += n
		if bytes, _ := strconv.Atoi(values[1]); bytes > lostBytes { // the script returns a number
			page = max(1, page/4)
		} else {
			page = min(lostMost, page*2)
		}
		if s.cursor = values[0]; s.cursor == "0" {
			return mended, nil
		}
	}
	return mended, nil
}

// sweepStep runs a script, and returns its values and the number at a place among them.
func sweepStep(at int, run func() ([]any, error)) (values []string, n int, err error) {
	list, err := run()
	if err != nil {
		return nil, 0, err
	}
	if values, err = scripts.Texts(list); err != nil {
		return nil, 0, err
	}
	if n, err = strconv.Atoi(values[at]); err != nil {
		return nil, 0, fmt.Errorf("%w: %w", scripts.ErrReply, err)
	}
	return values, n, nil
}
