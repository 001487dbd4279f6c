package server

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages/rpc"
)

const (
	// healthFresh is how long the health of the System is cached: a check queries Redis
	// and every poller, and peers may check at any rate.
	healthFresh = 100 * time.Millisecond
	// healthEvery is how often the health is checked for watchers.
	healthEvery = time.Second
)

// healthService is gRPC's health service. A System that is ready serves; one that
// has not started, drains or cannot reach Redis does not.
type healthService struct {
	grpc_health_v1.UnimplementedHealthServer
	system *wakebell.System

	mu     sync.Mutex // held during the check
	status grpc_health_v1.HealthCheckResponse_ServingStatus
	asked  time.Time // time of the last check; zero: never
}

// now returns the health of a service. It takes at most one second, the timeout of
// System.Health.
func (h *healthService) now(ctx context.Context, service string) grpc_health_v1.HealthCheckResponse_ServingStatus {
	if service != "" && service != rpc.Timers_ServiceDesc.ServiceName && service != rpc.Operations_ServiceDesc.ServiceName {
		return grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.asked.IsZero() && time.Since(h.asked) < healthFresh {
		return h.status
	}
	h.status = grpc_health_v1.HealthCheckResponse_NOT_SERVING
	if h.system.Health(context.WithoutCancel(ctx)).Ready { // the result is cached for other callers
		h.status = grpc_health_v1.HealthCheckResponse_SERVING
	}
	h.asked = time.Now()
	return h.status
}

// Check implements grpc_health_v1.HealthServer.
func (h *healthService) Check(ctx context.Context, r *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	is := h.now(ctx, r.GetService())
	if is == grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN {
		return nil, status.Errorf(codes.NotFound, "no service %q", r.GetService())
	}
	return &grpc_health_v1.HealthCheckResponse{Status: is}, nil
}

// Watch implements grpc_health_v1.HealthServer. It sends the current status, and
// then every change.
func (h *healthService) Watch(r *grpc_health_v1.HealthCheckRequest, stream grpc_health_v1.Health_WatchServer) error {
	again := time.NewTicker(healthEvery)
	defer again.Stop()
	sent := grpc_health_v1.HealthCheckResponse_UNKNOWN
	for {
		if is := h.now(stream.Context(), r.GetService()); is != sent {
			if err := stream.Send(&grpc_health_v1.HealthCheckResponse{Status: is}); err != nil {
				return err
			}
			sent = is
		}
		select {
		case <-again.C:
		case <-stream.Context().Done():
			return status.FromContextError(stream.Context().Err()).Err()
		}
	}
}
