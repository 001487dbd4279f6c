package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/meter"
)

// reading has the values of all counters at an instant.
type reading struct {
	at       time.Time
	client   time.Duration // CPU time of this process
	redis    time.Duration // CPU time of the redis-server processes
	machine  time.Duration // CPU time of everything on this machine; 0: unknown
	commands float64       // that Redis ran, including those of scripts
	mallocs  uint64        // of this process
}

// readMeters takes a reading. It sends one command to each server.
func readMeters(ctx context.Context, servers ...redis.UniversalClient) (r reading, err error) {
	for _, rdb := range servers {
		info, err := rdb.Info(ctx, "cpu", "stats").Result()
		if err != nil {
			return reading{}, fmt.Errorf("read the meters of redis: %w", err)
		}
		fields := parseInfo(info)
		r.redis += seconds(fields["used_cpu_user"] + fields["used_cpu_sys"])
		r.commands += fields["total_commands_processed"]
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	r.mallocs, r.machine, r.at = memory.Mallocs, machineCPU(), time.Now()
	if r.client = meter.ProcessCPU(); r.client < 0 {
		return reading{}, errors.New("the CPU time of this process is unknown")
	}
	return r, nil
}

// parseInfo reads the numbers of an answer to INFO.
func parseInfo(info string) map[string]float64 {
	fields := map[string]float64{}
	for line := range strings.Lines(info) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if x, err := strconv.ParseFloat(value, 64); ok && err == nil {
			fields[name] = x
		}
	}
	return fields
}

// clockTick is the unit of /proc/stat on current Linux systems.
const clockTick = 10 * time.Millisecond

// machineCPU returns the time that the processors were busy; 0: unknown.
func machineCPU() time.Duration {
	file, err := os.Open("/proc/stat")
	if err != nil {
		return 0
	}
	defer func() { _ = file.Close() }() // it was only read
	line := bufio.NewScanner(file)
	if !line.Scan() {
		return 0
	}
	return parseProcStat(line.Text())
}

// parseProcStat reads the first line of /proc/stat: "cpu user nice system idle
// iowait irq softirq steal …". Time stolen by other guests counts as busy, because it
// was not available.
func parseProcStat(line string) time.Duration {
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0
	}
	var busy int64
	for i, field := range fields[1:9] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0
		}
		if i != 3 && i != 4 { // idle, iowait
			busy += ticks
		}
	}
	return time.Duration(busy) * clockTick
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// sample has the results of one run of a contender by the name of the figure.
type sample map[string]float64

// The figures that most runs measure.
const (
	rate        = "rate"         // per second
	clientUS    = "client_us"    // CPU of the client per piece, µs
	redisUS     = "redis_us"     // CPU of Redis per piece, µs
	commandsPer = "commands_per" // commands that Redis ran per piece
	allocsPer   = "allocs_per"   // allocations of the client per piece
	othersBusy  = "others_busy"  // share of the machine that other processes used
)

// between returns the figures of n pieces of work between two readings.
func between(before, after reading, n int) sample {
	took, pieces := after.at.Sub(before.at), float64(n)
	client, server := after.client-before.client, after.redis-before.redis
	s := sample{
		rate:        pieces / took.Seconds(),
		clientUS:    client.Seconds() * 1e6 / pieces,
		redisUS:     server.Seconds() * 1e6 / pieces,
		commandsPer: (after.commands - before.commands) / pieces,
		allocsPer:   float64(after.mallocs-before.mallocs) / pieces,
	}
	if before.machine > 0 {
		s[othersBusy] = busyShare(after.machine-before.machine-client-server, took, runtime.NumCPU())
	}
	return s
}

// busyShare returns the share of n processors that a CPU time is of an elapsed time.
func busyShare(used, took time.Duration, n int) float64 {
	return max(0, used.Seconds()/(took.Seconds()*float64(n)))
}

// String lists the figures in the order of their names.
func (s sample) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(s)) {
		parts = append(parts, fmt.Sprintf("%s %s", name, digits(s[name])))
	}
	return strings.Join(parts, ", ")
}

// digits formats a number with three significant digits.
func digits(x float64) string {
	switch {
	case math.IsNaN(x):
		return "–"
	case x == 0:
		return "0"
	case math.Abs(x) >= 100:
		return strconv.FormatFloat(x, 'f', 0, 64)
	default:
		places := max(0, 2-int(math.Floor(math.Log10(math.Abs(x)))))
		return strconv.FormatFloat(x, 'f', min(places, 6), 64)
	}
}
