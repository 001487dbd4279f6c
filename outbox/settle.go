package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/wakebell/wakebell/actors/relay"
	"github.com/wakebell/wakebell/internal/text"
)

// maxErrorText bounds the error of a row, in bytes.
const maxErrorText = 1024

// Settle implements relay.Batch: it deletes what was relayed, and records why the rest
// was not, in the transaction of the claim.
func (b *batch) Settle(ctx context.Context, results []relay.Result) error {
	if err := b.settle(ctx, results); err != nil {
		return fmt.Errorf("settle in %s: %w", b.store.table, err)
	}
	return nil
}

func (b *batch) settle(ctx context.Context, results []relay.Result) error {
	changes := b.changes(results)
	tx := b.tx
	if tx == nil {
		if len(changes) == 0 {
			return nil
		}
		var err error
		if tx, err = b.store.db.BeginTx(ctx, nil); err != nil {
			return err
		}
	}
	for _, c := range changes {
		if _, err := tx.ExecContext(ctx, b.store.sql(c.text), c.args...); err != nil {
			return errors.Join(err, ignoreDone(tx.Rollback()))
		}
	}
	return tx.Commit()
}

// change is a statement.
type change struct {
	text string
	args []any
}

// changes returns the statements that store the results.
func (b *batch) changes(results []relay.Result) (all []change) {
	now := b.store.now()
	var relayed []int64
	retryAt := map[string]int64{} // by stream
	blocked := b.blocked
	for i, r := range b.rows {
		switch result := results[i]; result.Verdict {
		case relay.Relayed:
			relayed = append(relayed, r.seq)
		case relay.Rejected:
			all = append(all, change{
				"UPDATE {table} SET attempts = attempts + 1, failed_at = ?, error = ? WHERE seq = ?",
				[]any{micros(now), errorText(result.Err), r.seq},
			})
		case relay.Deferred:
			retryAt[r.stream] = micros(now.Add(deferral(r.attempts)))
			all = append(all, change{
				"UPDATE {table} SET attempts = attempts + 1, retry_at = ?, error = ? WHERE seq = ?",
				[]any{retryAt[r.stream], errorText(result.Err), r.seq},
			})
		case relay.Blocked:
			at := retryAt[r.stream]
			blocked[at] = append(blocked[at], r.seq)
		case relay.Left:
		}
	}
	for at, seqs := range blocked {
		condition, args := among("seq", seqs)
		all = append(all, change{"UPDATE {table} SET retry_at = ? WHERE " + condition, append([]any{at}, args...)})
	}
	if len(relayed) > 0 {
		condition, args := among("seq", relayed)
		all = append(all, change{"DELETE FROM {table} WHERE " + condition, args})
	}
	return all
}

// errorText returns the text of an error that every database can store.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return legible(strings.ToValidUTF8(text.Clip(err.Error(), maxErrorText), "\ufffd"))
}
