package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	pings         = 3
	slowPing      = 50 * time.Millisecond
	clockOff      = time.Second
	memoryTight   = 0.8
	memoryFull    = 0.95
	behindReplica = 10 * time.Second
)

var errUnknown = errors.New("not reported by the server")

// serverExam examines one server.
type serverExam struct {
	*doctor
	node   redis.Cmdable
	server string

	info    map[string]string // of INFO
	infoErr error
}

func (v *serverExam) add(check string, g wakebelltype.Grade, found, do string) {
	v.doctor.add(wakebelltype.Finding{Check: check, Server: v.server, Grade: g, Found: found, Do: do})
}

// unknown adds a check that could not run, and the right that it needs.
func (v *serverExam) unknown(check string, err error, right string) {
	do := ""
	if redis.IsPermissionError(err) {
		do = "to have it checked, give the user " + right
	}
	v.add(check, wakebelltype.GradeUnknown, "not checked: "+err.Error(), do)
}

// examine runs all checks. It returns false if the server does not answer.
func (v *serverExam) examine(ctx context.Context) bool {
	trip, err := v.ping(ctx)
	if err != nil {
		v.unreachable(v.server, scripts.Wrap(ctx, nil, err))
		return false
	}
	grade, do := wakebelltype.GradeGood, ""
	if trip > slowPing {
		grade, do = wakebelltype.GradeWarn, "move the nodes nearer to Redis: every claim and settlement takes a round trip"
	}
	v.add("reachable", grade, "round trip "+inMillis(trip), do)

	sections, err := v.node.InfoMap(ctx).Result()
	v.info, v.infoErr = map[string]string{}, scripts.Wrap(ctx, nil, err)
	for _, fields := range sections {
		maps.Copy(v.info, fields)
	}
	v.version(ctx)
	v.eviction()
	v.memory()
	v.persistence(ctx)
	v.replicas(ctx)
	v.clock(ctx)
	return true
}

// ping returns the fastest of a few round trips.
func (v *serverExam) ping(ctx context.Context) (fastest time.Duration, err error) {
	for i := range pings {
		began := time.Now()
		if err := v.node.Ping(ctx).Err(); err != nil {
			return 0, err
		}
		if trip := time.Since(began); i == 0 || trip < fastest {
			fastest = trip
		}
	}
	return fastest, nil
}

// infoField returns a field of INFO. If the field is missing, it adds the check as
// Unknown and returns false.
func (v *serverExam) infoField(check, field string) (string, bool) {
	value, ok := v.info[field]
	if !ok {
		err := v.infoErr
		if err == nil {
			err = fmt.Errorf("%w: no %s in INFO", errUnknown, field)
		}
		v.unknown(check, err, "+info")
	}
	return value, ok
}

// setting reads a setting of the server, which needs the right to CONFIG GET.
func (v *serverExam) setting(ctx context.Context, name string) (string, error) {
	found, err := v.node.ConfigGet(ctx, name).Result()
	if err != nil {
		return "", scripts.Wrap(ctx, nil, err)
	}
	value, ok := found[name]
	if !ok {
		return "", fmt.Errorf("%w: %s", errUnknown, name)
	}
	return value, nil
}

func (v *serverExam) version(ctx context.Context) {
	const do = "use Redis 6.2 or later"
	if found := v.info["redis_version"]; found != "" {
		if tooOld(found) {
			v.add("version", wakebelltype.GradeBad, found, do)
			return
		}
		v.add("version", wakebelltype.GradeGood, found, "")
		return
	}
	// Without INFO, a command that came with 6.2 shows the version.
	switch err := v.CheckVersion(ctx, nil); {
	case errors.Is(err, wakebelltype.ErrUnsupported):
		v.add("version", wakebelltype.GradeBad, "older than 6.2", do)
	case err == nil:
		v.add("version", wakebelltype.GradeGood, "6.2 or later", "")
	default:
		v.unknown("version", err, "+info")
	}
}

// tooOld reads a version such as 7.0.15. A version that it cannot read is not too
// old.
func tooOld(version string) bool {
	var major, minor int
	n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor) // n counts the numbers that were read
	return n == 2 && (major < 6 || major == 6 && minor < 2)
}

func (v *serverExam) eviction() {
	policy, ok := v.infoField("eviction", "maxmemory_policy")
	if !ok {
		return
	}
	const do = "set maxmemory-policy to noeviction"
	switch bounded := v.info["maxmemory"] != "0"; {
	case policy == "noeviction":
		v.add("eviction", wakebelltype.GradeGood, policy, "")
	case !bounded:
		v.add("eviction", wakebelltype.GradeWarn, policy+", without effect while there is no maxmemory", do)
	case strings.HasPrefix(policy, "volatile-"):
		v.add("eviction", wakebelltype.GradeWarn, policy+": marks of Once and the answers to repeated exchanges may be dropped early", do)
	default:
		v.add("eviction", wakebelltype.GradeBad, policy+": Redis drops timers when its memory is full", do)
	}
}

func (v *serverExam) memory() {
	const check = "memory"
	used, ok := v.infoField(check, "used_memory")
	if !ok {
		return
	}
	limit, ok := v.infoField(check, "maxmemory")
	if !ok {
		return
	}
	have, err1 := strconv.ParseFloat(used, 64)
	most, err2 := strconv.ParseFloat(limit, 64)
	if err := errors.Join(err1, err2); err != nil {
		v.unknown(check, err, "")
		return
	}
	if most == 0 {
		v.add(check, wakebelltype.GradeGood, fmt.Sprintf("%.1f MiB used, without a maxmemory", have/(1<<20)), "")
		return
	}
	found := fmt.Sprintf("%.1f of %.1f MiB used", have/(1<<20), most/(1<<20))
	const do = "give Redis more memory, or delete dead letters: schedules are refused when it is full"
	switch part := have / most; {
	case part >= memoryFull:
		v.add(check, wakebelltype.GradeBad, found, do)
	case part >= memoryTight:
		v.add(check, wakebelltype.GradeWarn, found, do)
	default:
		v.add(check, wakebelltype.GradeGood, found, "")
	}
}

func (v *serverExam) clock(ctx context.Context) {
	began := time.Now()
	theirs, err := v.node.Time(ctx).Result()
	trip := time.Since(began)
	if err != nil {
		v.unknown("clock", scripts.Wrap(ctx, nil, err), "+time")
		return
	}
	offset := theirs.Sub(began.Add(trip / 2))
	than := "ahead of"
	if offset < 0 {
		than = "behind"
	}
	found := fmt.Sprintf("Redis is %s %s this machine, ±%s; delivery uses Redis's clock only",
		inMillis(offset.Abs()), than, inMillis(trip/2))
	if offset.Abs()-trip/2 > clockOff {
		v.add("clock", wakebelltype.GradeWarn, found, "synchronize the clocks: instants from this machine's clock are off by that much")
		return
	}
	v.add("clock", wakebelltype.GradeGood, found, "")
}
