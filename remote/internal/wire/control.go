package wire

import (
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/wakebelltype"
)

// ControlMessage converts the cluster-wide settings of a topic to a message.
func ControlMessage(c wakebelltype.Control) *messages.TopicControl {
	return &messages.TopicControl{
		Paused: c.Paused, PausedAt: convert.Timestamp(c.PausedAt), PausedBy: text.Valid(c.PausedBy), Reason: text.Valid(c.Reason),
		Settings: SettingsMessage(c.Settings), PausedUntil: convert.Timestamp(c.PausedUntil),
	}
}

// ControlOf is the inverse of ControlMessage.
func ControlOf(m *messages.TopicControl) wakebelltype.Control {
	return wakebelltype.Control{
		Paused: m.GetPaused(), PausedAt: convert.Time(m.GetPausedAt()), PausedBy: m.GetPausedBy(), Reason: m.GetReason(),
		Settings: SettingsOf(m.GetSettings()), PausedUntil: convert.Time(m.GetPausedUntil()),
	}
}

// ShardsMessage converts the layout of a topic to a message.
func ShardsMessage(l wakebelltype.ShardLayout) *messages.TopicShards {
	return &messages.TopicShards{Shards: convert.Count(l.Shards), Next: convert.Count(l.Next), Before: convert.Count(l.Before), Moving: l.Moving, Since: convert.Timestamp(l.Since)}
}

// ShardsOf is the inverse of ShardsMessage.
func ShardsOf(m *messages.TopicShards) wakebelltype.ShardLayout {
	return wakebelltype.ShardLayout{Shards: int(m.GetShards()), Next: int(m.GetNext()), Before: int(m.GetBefore()), Moving: m.GetMoving(), Since: convert.Time(m.GetSince())}
}

// SettingsMessage converts the settings of a topic to a message, whose fields have
// the names of the table.
func SettingsMessage(s wakebelltype.Settings) *messages.TopicSettings {
	m := (&messages.TopicSettings{}).ProtoReflect()
	for _, t := range tuning.All {
		field := m.Descriptor().Fields().ByName(protoreflect.Name(t.Name))
		if n := t.Number(&s); n != nil && t.Off {
			m.Set(field, protoreflect.ValueOfInt32(convert.Number(*n)))
		} else if n != nil {
			m.Set(field, protoreflect.ValueOfUint32(convert.Count(*n)))
		} else if d := *t.Duration(&s); d != 0 {
			m.Set(field, protoreflect.ValueOfMessage(durationpb.New(d).ProtoReflect()))
		}
	}
	return m.Interface().(*messages.TopicSettings)
}

// SettingsOf is the inverse of SettingsMessage.
func SettingsOf(settings *messages.TopicSettings) (s wakebelltype.Settings) {
	m := settings.ProtoReflect()
	for _, t := range tuning.All {
		field := m.Descriptor().Fields().ByName(protoreflect.Name(t.Name))
		if n := t.Number(&s); n != nil && t.Off {
			*n = int(m.Get(field).Int())
		} else if n != nil {
			*n = int(m.Get(field).Uint()) //nolint:gosec // a uint32
		} else if d, ok := m.Get(field).Message().Interface().(*durationpb.Duration); ok {
			*t.Duration(&s) = d.AsDuration()
		}
	}
	return s
}

// NodeStateMessage converts the state of a node to a message.
func NodeStateMessage(n *wakebelltype.NodeState) *messages.NodeState {
	if n == nil {
		return nil
	}
	return &messages.NodeState{
		Version: text.Valid(n.Version), Started: convert.Timestamp(n.Started), Role: text.Valid(n.Role), Breaker: text.Valid(n.Breaker),
		Paused: n.Paused, Running: convert.Count(n.Running), Concurrency: convert.Count(n.Concurrency), Prefetch: n.Prefetch,
		Restarts: n.Restarts, Outages: n.Outages, Options: SettingsMessage(n.Options),
		BreakerSince: convert.Timestamp(n.BreakerSince), BreakerUntil: convert.Timestamp(n.BreakerUntil), BreakerReason: text.Valid(n.BreakerReason),
		Group: text.Valid(n.Group), Weight: convert.Count(n.Weight), Longest: longRunMessages(n.Longest),
		ExpireAfter: Span(n.ExpireAfter),
	}
}

func longRunMessages(runs []wakebelltype.LongRun) (all []*messages.LongRun) {
	for _, r := range runs {
		all = append(all, &messages.LongRun{Id: text.Valid(r.ID), Attempt: convert.Count(r.Attempt), Since: convert.Timestamp(r.Since)})
	}
	return all
}

func longRunsOf(all []*messages.LongRun) (runs []wakebelltype.LongRun) {
	for _, m := range all {
		runs = append(runs, wakebelltype.LongRun{ID: m.GetId(), Attempt: int(m.GetAttempt()), Since: convert.Time(m.GetSince())})
	}
	return runs
}

// NodeStateOf is the inverse of NodeStateMessage.
func NodeStateOf(m *messages.NodeState) *wakebelltype.NodeState {
	if m == nil {
		return nil
	}
	return &wakebelltype.NodeState{
		Version: m.GetVersion(), Started: convert.Time(m.GetStarted()), Role: m.GetRole(), Breaker: m.GetBreaker(),
		Paused: m.GetPaused(), Running: int(m.GetRunning()), Concurrency: int(m.GetConcurrency()), Prefetch: m.GetPrefetch(),
		Restarts: m.GetRestarts(), Outages: m.GetOutages(), Options: SettingsOf(m.GetOptions()),
		BreakerSince: convert.Time(m.GetBreakerSince()), BreakerUntil: convert.Time(m.GetBreakerUntil()), BreakerReason: m.GetBreakerReason(),
		Group: m.GetGroup(), Weight: int(m.GetWeight()), Longest: longRunsOf(m.GetLongest()),
		ExpireAfter: m.GetExpireAfter().AsDuration(),
	}
}

// ReportMessages converts what nodes have reported of a topic to messages.
func ReportMessages(all []wakebelltype.NodeReport) (reports []*messages.NodeReport) {
	for _, r := range all {
		reports = append(reports, &messages.NodeReport{Node: text.Valid(r.Node), State: NodeStateMessage(&r.State)})
	}
	return reports
}

// ReportsOf is the inverse of ReportMessages.
func ReportsOf(all []*messages.NodeReport) (reports []wakebelltype.NodeReport) {
	for _, m := range all {
		r := wakebelltype.NodeReport{Node: m.GetNode()}
		if state := NodeStateOf(m.GetState()); state != nil {
			r.State = *state
		}
		reports = append(reports, r)
	}
	return reports
}

// Span returns d as a field of a message, or nil if d is zero.
func Span(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}
