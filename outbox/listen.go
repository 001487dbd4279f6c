package outbox

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/wakebell/wakebell/internal/argument"
)

// PgxConn is what PgxListen uses of a *pgx.Conn.
type PgxConn[Tag, Notification any] interface {
	Exec(ctx context.Context, query string, args ...any) (Tag, error)
	WaitForNotification(ctx context.Context) (Notification, error)
	Close(ctx context.Context) error
}

// PgxListen returns a RelayConfig.Listen for PostgreSQL. It keeps a connection of its
// own, which connect opens, as with pgx.Connect, and closes it in the end. The type
// parameters are inferred. The connection must not pass through a pooler that shares
// sessions.
func PgxListen[C PgxConn[Tag, Notification], Tag, Notification any](o *Outbox, connect func(context.Context) (C, error)) func(context.Context, func()) error {
	return func(ctx context.Context, wake func()) (err error) {
		if o == nil || o.kind != PostgreSQL || connect == nil {
			return argument.Invalid("PgxListen", "want an Outbox of PostgreSQL and a function that connects")
		}
		conn, err := connect(ctx)
		if err != nil {
			return fmt.Errorf("listen to %s: %w", o.table, err)
		}
		defer func() {
			within, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_ = conn.Close(within) // it may be broken
		}()
		if _, err := conn.Exec(ctx, `LISTEN "`+strings.ReplaceAll(o.table, `"`, `""`)+`"`); err != nil {
			return fmt.Errorf("listen to %s: %w", o.table, err)
		}
		for {
			wake() // for what was written before, too
			if _, err := conn.WaitForNotification(ctx); err != nil {
				return fmt.Errorf("listen to %s: %w", o.table, err)
			}
		}
	}
}
