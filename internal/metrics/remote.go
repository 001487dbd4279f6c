package metrics

import (
	"context"

	"go.opentelemetry.io/otel/metric"
)

type remoteInstruments struct {
	sessions                             metric.Int64UpDownCounter
	requests, rejected, io, backPressure metric.Int64Counter
}

func newRemoteInstruments(m metric.Meter) remoteInstruments {
	return remoteInstruments{
		sessions: remoteSessions.upDown(m), requests: remoteRequests.counter(m), rejected: remoteRejected.counter(m),
		io: remoteIO.counter(m), backPressure: remoteBackPressure.counter(m),
	}
}

// Session counts a session of a peer that begins, and returns what counts its end.
func (m *Metrics) Session(ctx context.Context, kind string) (end func()) {
	if m == nil {
		return func() {}
	}
	o := newOption(sessionKind.String(kind))
	m.remote.sessions.Add(ctx, 1, o.add...)
	return func() { m.remote.sessions.Add(ctx, -1, o.add...) }
}

// Requested counts a request of a peer.
func (m *Metrics) Requested(ctx context.Context, method, code string) {
	if m != nil {
		count(ctx, m.remote.requests, 1, rpcMethod.String(method), rpcCode.String(code))
	}
}

// Bytes counts what a connection of a peer received or transmitted.
func (m *Metrics) Bytes(ctx context.Context, received, transmitted int) {
	if m == nil {
		return
	}
	if received > 0 {
		m.remote.io.Add(ctx, int64(received), fromPeers.add...)
	}
	if transmitted > 0 {
		m.remote.io.Add(ctx, int64(transmitted), toPeers.add...)
	}
}

var fromPeers, toPeers = newOption(direction.String("receive")), newOption(direction.String("transmit"))

// FrameRejected counts a frame or message of a peer that was refused.
func (m *Metrics) FrameRejected(ctx context.Context) {
	if m != nil {
		count(ctx, m.remote.rejected, 1)
	}
}

// BackPressure counts a request that a bound refused or delayed.
func (m *Metrics) BackPressure(ctx context.Context, name string) {
	if m != nil {
		count(ctx, m.remote.backPressure, 1, bound.String(name))
	}
}
