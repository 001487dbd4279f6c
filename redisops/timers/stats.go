package timers

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	statsSample = 1000 // lease records that Stats reads
	statsValues = 10   // values in the reply of its script
)

// Stats returns the statistics of a topic. It runs one script, whose cost does not
// grow with the topic.
func (s *Timers) Stats(ctx context.Context, topic string) (wakebelltype.Stats, error) {
	if err := layout.CheckTopic(topic); err != nil {
		return wakebelltype.Stats{}, err
	}
	list, err := s.RunList(ctx, statsValues, statsScript, statsKeys(s.keys.Of(topic)), statsSample)
	if err != nil {
		return wakebelltype.Stats{}, fmt.Errorf("stats of %q: %w", topic, err)
	}
	return readStats(list)
}

func statsKeys(k TopicKeys) []string { return []string{k.Timeline, k.Leases, k.Dead, k.Control} }

func readStats(list []any) (wakebelltype.Stats, error) {
	var st wakebelltype.Stats
	values, err := scripts.Texts(list)
	if err != nil {
		return st, err
	}
	if len(values) < statsValues {
		return st, fmt.Errorf("%w: %d values of stats", scripts.ErrReply, len(values))
	}
	var records, read, leased, retrying int64
	for i, into := range []*int64{&st.Total, &st.Due, &st.Dead, &records, &read, &leased, &retrying} {
		var err error
		if *into, err = strconv.ParseInt(values[1+i], 10, 64); err != nil {
			return wakebelltype.Stats{}, fmt.Errorf("%w: %w", scripts.ErrReply, err)
		}
	}
	st.Estimated = read < records
	later := st.Total - st.Due
	scale := func(n int64) int64 {
		if st.Estimated {
			n = int64(math.Round(float64(n) / float64(read) * float64(records)))
		}
		n = min(n, later)
		later -= n
		return n
	}
	st.Leased, st.Retrying = scale(leased), scale(retrying)
	st.Pending = later
	now, err := scripts.ReadScore(values[0])
	if err != nil {
		return wakebelltype.Stats{}, err
	}
	if values[8] != "" {
		oldest, err := scripts.ReadScore(values[8])
		if err != nil {
			return wakebelltype.Stats{}, err
		}
		st.OldestDue, st.Lag = scripts.Instant(oldest), scripts.Between(oldest, now)
	}
	if values[9] != "" {
		st.Paused, st.PausedAt = true, scripts.ReadInstant(values[9])
	}
	return st, nil
}
