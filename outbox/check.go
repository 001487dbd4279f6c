package outbox

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	// lateAfter is the lag at which Check warns, stuckAfter that at which timers are
	// not delivered.
	lateAfter  = 30 * time.Second
	stuckAfter = 10 * time.Minute
)

// Check reports whether the outbox works, as wakebell.Client.Diagnose does for Redis:
// a Finding each about the database, the table, the backlog and the failed rows. The
// Topic of a Finding is the name of the table. A check that cannot run is unknown.
func (o *Outbox) Check(ctx context.Context, db DB) []wakebelltype.Finding {
	all := []wakebelltype.Finding{o.checkDatabase(ctx, db), o.checkColumns(ctx, db)}
	stats, err := o.Stats(ctx, db)
	all = append(all, checkBacklog(stats), checkFailed(stats))
	for i, name := range []string{"outbox-database", "outbox-table", "outbox-backlog", "outbox-failed"} {
		if err != nil && i >= 2 {
			all[i] = wakebelltype.Finding{Grade: wakebelltype.GradeUnknown, Found: err.Error()}
		}
		all[i].Check, all[i].Topic = name, o.table
	}
	return all
}

func (o *Outbox) checkDatabase(ctx context.Context, db DB) wakebelltype.Finding {
	var version string
	if err := o.scan(ctx, db, o.dialect.version, nil, &version); err != nil {
		return wakebelltype.Finding{Grade: wakebelltype.GradeBad, Found: err.Error(), Do: "make the database reachable for the nodes that relay"}
	}
	f := wakebelltype.Finding{Grade: wakebelltype.GradeGood, Found: o.dialect.name + " " + version}
	if want, old := o.tooOld(version); old {
		f.Grade, f.Do = wakebelltype.GradeBad, "use "+want+" or newer: the relay needs its SQL"
	}
	return f
}

var versionNumber = regexp.MustCompile(`(\d+)\.(\d+)`)

// tooOld reports whether a server lacks what the statements need, and which one has it.
func (o *Outbox) tooOld(version string) (want string, old bool) {
	found := versionNumber.FindStringSubmatch(version)
	if found == nil {
		return "", false
	}
	major, _ := strconv.Atoi(found[1])
	minor, _ := strconv.Atoi(found[2])
	before := func(a, b int) bool { return major < a || major == a && minor < b }
	switch {
	case o.kind == PostgreSQL:
		return "PostgreSQL 10", before(10, 0)
	case o.kind == MySQL && strings.Contains(version, "MariaDB"):
		return "MariaDB 10.6", before(10, 6)
	case o.kind == MySQL:
		return "MySQL 8.0.1", before(8, 0)
	default:
		return "SQLite 3.24", before(3, 24)
	}
}

func (o *Outbox) checkColumns(ctx context.Context, db DB) wakebelltype.Finding {
	var rows int
	const query = "SELECT COUNT(*) FROM (SELECT seq, request_key, stream, kind, target, timer, body, created_at, retry_at, attempts, failed_at, error " +
		"FROM {table} WHERE seq < 0) t"
	const lanes = "SELECT COUNT(*) FROM (SELECT lane, kind, target, retry_at, attempts, outage, error FROM {parked} WHERE lane = 0) p"
	err := o.scan(ctx, db, query, nil, &rows)
	if err == nil {
		err = o.scan(ctx, db, lanes, nil, &rows)
	}
	if err != nil {
		return wakebelltype.Finding{Grade: wakebelltype.GradeBad, Found: err.Error(), Do: "call Outbox.Migrate, or apply Outbox.Migrations"}
	}
	return wakebelltype.Finding{Grade: wakebelltype.GradeGood, Found: "the tables have all columns"}
}

func checkBacklog(s Stats) wakebelltype.Finding {
	f := wakebelltype.Finding{Grade: wakebelltype.GradeGood, Found: fmt.Sprintf("%d rows wait, %d of them deferred, the oldest for %v", s.Waiting, s.Deferred, s.Lag.Round(time.Second))}
	switch {
	case s.Lag >= stuckAfter:
		f.Grade = wakebelltype.GradeBad
	case s.Lag >= lateAfter:
		f.Grade = wakebelltype.GradeWarn
	default:
		return f
	}
	f.Do = "start a relay, and read its log and Status; deferred rows have their reason in the column error"
	return f
}

func checkFailed(s Stats) wakebelltype.Finding {
	if s.Failed == 0 {
		return wakebelltype.Finding{Grade: wakebelltype.GradeGood, Found: "no failed rows"}
	}
	return wakebelltype.Finding{
		Grade: wakebelltype.GradeWarn, Found: fmt.Sprintf("%d rows were set aside", s.Failed),
		Do: "read their errors with Outbox.Failed, then Retry or Discard them",
	}
}
