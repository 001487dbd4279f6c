package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/wakebell/wakebell/wakebelltype"
)

// persistence checks which timers survive a restart of the server.
func (v *serverExam) persistence(ctx context.Context) {
	const check = "persistence"
	aof, ok := v.infoField(check, "aof_enabled")
	if !ok {
		return
	}
	for _, status := range []string{"aof_last_write_status", "aof_last_bgrewrite_status", "rdb_last_bgsave_status"} {
		if said, ok := v.info[status]; ok && said != "ok" {
			v.add(check, wakebelltype.GradeBad, status+" is "+said, "make room on the disk of Redis, and read its log")
			return
		}
	}
	if aof == "1" {
		v.appendOnly(ctx)
		return
	}
	save, err := v.setting(ctx, "save")
	saved := "none yet"
	if at, e := strconv.ParseInt(v.info["rdb_last_save_time"], 10, 64); e == nil && at > 0 {
		saved = "the last at " + time.Unix(at, 0).UTC().Format(time.RFC3339)
	}
	const do = "set appendonly to yes"
	switch {
	case err != nil:
		v.add(check, wakebelltype.GradeWarn, "no append-only file, and the setting for snapshots is unknown: "+err.Error(), do)
	case save == "":
		v.add(check, wakebelltype.GradeBad, "no persistence: timers are lost when Redis restarts", do)
	default:
		v.add(check, wakebelltype.GradeWarn, fmt.Sprintf("snapshots only (%s): a crash loses timers scheduled since the last one", saved), do)
	}
}

func (v *serverExam) appendOnly(ctx context.Context) {
	const check = "persistence"
	fsync, err := v.setting(ctx, "appendfsync")
	switch {
	case err != nil:
		v.add(check, wakebelltype.GradeGood, "append-only file; how often it is synced is unknown", "")
	case fsync == "no":
		v.add(check, wakebelltype.GradeWarn, "append-only file, appendfsync no: a crash of the machine loses writes that the system has not flushed yet", "set appendfsync to everysec or always")
	default:
		v.add(check, wakebelltype.GradeGood, "append-only file, appendfsync "+fsync, "")
	}
}

// replicas checks which timers survive the loss of the server.
func (v *serverExam) replicas(ctx context.Context) {
	const check = "replicas"
	role, ok := v.infoField(check, "role")
	if !ok {
		return
	}
	if role != "master" {
		v.add(check, wakebelltype.GradeBad, "this is a "+role+", which accepts no writes", "give the address of the master, or a redis+sentinel URL")
		return
	}
	said, ok := v.infoField(check, "connected_slaves")
	if !ok {
		return
	}
	count, err := strconv.Atoi(said)
	if err != nil {
		v.unknown(check, err, "")
		return
	}
	if count == 0 {
		v.add(check, wakebelltype.GradeWarn, "none: timers wait for this server to come back, with what its disk has", "add a replica, and Sentinel or a Cluster to promote it")
		return
	}
	if behind := v.behind(count); behind > 0 {
		v.add(check, wakebelltype.GradeWarn, fmt.Sprintf("%d of %d are not up to date", behind, count), "read the logs of the replicas: a failover loses the writes that they lack")
		return
	}
	least, err := v.setting(ctx, "min-replicas-to-write")
	found := fmt.Sprintf("%d up to date", count)
	switch {
	case err != nil:
		v.add(check, wakebelltype.GradeGood, found+"; min-replicas-to-write is unknown", "")
	case least == "0":
		v.add(check, wakebelltype.GradeWarn, found+", min-replicas-to-write 0: an isolated master acknowledges writes that a failover loses", "set min-replicas-to-write to 1")
	default:
		v.add(check, wakebelltype.GradeGood, found+", min-replicas-to-write "+least, "")
	}
}

// behind counts the replicas that are disconnected or not up to date. INFO has a
// line such as slave0:ip=…,port=…,state=online,offset=…,lag=1 for each.
func (v *serverExam) behind(count int) (behind int) {
	for i := range count {
		line, ok := v.info["slave"+strconv.Itoa(i)]
		if !ok {
			continue // nothing is known without the line
		}
		fields := map[string]string{}
		for field := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(field, "=")
			fields[name] = value
		}
		lag, err := strconv.Atoi(fields["lag"])
		if fields["state"] != "online" || err == nil && time.Duration(lag)*time.Second > behindReplica {
			behind++
		}
	}
	return behind
}
