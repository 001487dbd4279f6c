package outbox

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/wakebell/wakebell/internal/argument"
)

//go:embed migrations
var migrations embed.FS

// Migration is a step that creates or changes the table.
type Migration struct {
	Version int    // from 1
	Name    string // as "create"
	SQL     string // statements, each ends with a semicolon at the end of a line
}

// Migrations returns all steps in their order, for programs with a migration tool of
// their own. Each may be repeated. Migrate applies them.
func (o *Outbox) Migrations() ([]Migration, error) {
	dir := path.Join("migrations", o.dialect.name)
	files, err := migrations.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	all := make([]Migration, len(files)) // in the order of their names
	for i, file := range files {
		number, name, _ := strings.Cut(strings.TrimSuffix(file.Name(), ".sql"), "_")
		text, err := migrations.ReadFile(path.Join(dir, file.Name()))
		if err == nil {
			all[i].Version, err = strconv.Atoi(number)
		}
		if err != nil {
			return nil, err
		}
		all[i].Name, all[i].SQL = name, o.sql(string(text))
	}
	return all, nil
}

// statements returns the statements of a migration.
func (m Migration) statements() (all []string) {
	for text := range strings.SplitSeq(m.SQL, ";\n") {
		if text = strings.TrimSpace(text); text != "" {
			all = append(all, text)
		}
	}
	return all
}

// lockWait is how long Migrate waits on MySQL for another Migrate, in seconds.
const lockWait = 60

// Migrate creates the table, or brings that of an older version up to date. It records
// what it applied in a second table with the suffix "_migrations". It may be called at
// every start and by several processes at once. The user needs the right to create
// tables; see Migrations for another way.
func (o *Outbox) Migrate(ctx context.Context, db *sql.DB) error {
	if db == nil {
		return argument.Invalid("db", "nil")
	}
	steps, err := o.Migrations()
	if err != nil {
		return err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("migrate %s: %w", o.table, err)
	}
	err = o.locked(ctx, conn, func() error { return o.apply(ctx, conn, steps) })
	if err = errors.Join(err, conn.Close()); err != nil {
		return fmt.Errorf("migrate %s: %w", o.table, err)
	}
	return nil
}

func (o *Outbox) apply(ctx context.Context, conn *sql.Conn, steps []Migration) error {
	const create = "CREATE TABLE IF NOT EXISTS {migrations} (version int PRIMARY KEY, applied_at bigint NOT NULL)"
	if _, err := conn.ExecContext(ctx, o.sql(create)); err != nil {
		return err
	}
	var version int
	if err := conn.QueryRowContext(ctx, o.sql("SELECT COALESCE(MAX(version), 0) FROM {migrations}")).Scan(&version); err != nil {
		return err
	}
	for _, step := range steps {
		if step.Version <= version {
			continue
		}
		for _, statement := range step.statements() {
			if _, err := conn.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("%d_%s: %w", step.Version, step.Name, err)
			}
		}
		if _, err := conn.ExecContext(ctx, o.sql("INSERT INTO {migrations} (version, applied_at) VALUES (?, ?)"), step.Version, micros(o.now())); err != nil {
			return err
		}
	}
	return nil
}

// locked runs fn while no other process migrates this table, in a transaction where the
// database can create tables in one.
func (o *Outbox) locked(ctx context.Context, conn *sql.Conn, fn func() error) error {
	sum := sha256.Sum256([]byte("wakebell outbox " + o.table))
	number := int64(binary.BigEndian.Uint64(sum[:]) >> 1) //nolint:gosec // shifted
	begin, lock := "BEGIN", fmt.Sprintf("SELECT 1 FROM pg_advisory_xact_lock(%d)", number)
	commit, rollback := "COMMIT", "ROLLBACK"
	switch o.kind {
	case PostgreSQL:
	case MySQL:
		begin, lock = "", fmt.Sprintf("SELECT GET_LOCK('wakebell_outbox_%x', %d)", sum[:8], lockWait)
		commit = fmt.Sprintf("DO RELEASE_LOCK('wakebell_outbox_%x')", sum[:8])
		rollback = commit
	case SQLite:
		begin, lock = "BEGIN IMMEDIATE", "SELECT 1"
	}
	end := func(statement string) error { // also when ctx has ended: the connection goes back to the pool
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_, err := conn.ExecContext(within, statement)
		return err
	}
	if begin != "" {
		if _, err := conn.ExecContext(ctx, begin); err != nil {
			return err
		}
	}
	var got sql.NullInt64
	err := conn.QueryRowContext(ctx, lock).Scan(&got)
	if err == nil && got.Int64 != 1 {
		return fmt.Errorf("another process has been migrating for %d s", lockWait)
	}
	if err == nil {
		err = fn()
	}
	if err != nil {
		return errors.Join(err, end(rollback))
	}
	return end(commit)
}
