package remote_test

import (
	"context"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
)

// lasting waits, so that connections of an attack stay open during other attacks.
func lasting(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

// connectionAttacks are the attacks of hostile_connections_test.go.
var connectionAttacks = []attack{
	{"bodies that do not end", func(t *testing.T, n *node, random *rand.Rand) {
		unfinished := zeros(7 << 20)
		unfinished = unfinished[:len(unfinished)-1]
		method := []string{scheduleMethod, sessionMethod}[random.IntN(2)]
		token := []string{"", malloryToken}[random.IntN(2)]
		inParallel(3, func(int) {
			r := knock(t, n)
			for range 6 {
				r.send(r.call(method, token), unfinished, false)
			}
			_ = r.Close()
		})
	}},
	{"bodies in small frames", func(t *testing.T, n *node, random *rand.Rand) {
		unfinished := zeros(7 << 20)
		unfinished = unfinished[:len(unfinished)-1]
		frame := []int{1, 512, 1025, 4097}[random.IntN(4)]
		inParallel(2, func(int) {
			r := knock(t, n)
			r.frame = frame
			for range 2 {
				r.send(r.call(scheduleMethod, malloryToken), unfinished, false)
			}
			_ = r.Close()
		})
	}},
	{"complete bodies in a loop", func(t *testing.T, n *node, random *rand.Rand) {
		whole := zeros(7 << 20)
		token := []string{"", malloryToken}[random.IntN(2)]
		inParallel(4, func(int) {
			r := knock(t, n)
			for range 8 {
				r.send(r.call(scheduleMethod, token), whole, true)
			}
			_ = r.Close()
		})
	}},
	{"calls whose body does not come", func(t *testing.T, n *node, random *rand.Rand) {
		conn := n.dial(t)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // a connection has a limit of streams; further ones wait
		defer cancel()
		for range 200 {
			_, err := conn.NewStream(bearing(ctx, malloryToken), &grpc.StreamDesc{ClientStreams: true}, scheduleMethod)
			if err != nil {
				break
			}
		}
		_ = conn.Close()
	}},
	{"silent connections", func(t *testing.T, n *node, random *rand.Rand) {
		var made []net.Conn
		for range 300 + random.IntN(200) {
			if conn, err := net.Dial("tcp", n.address); err == nil {
				made = append(made, conn)
			}
		}
		lasting(t, time.Duration(random.IntN(1000))*time.Millisecond)
		for _, conn := range made {
			_ = conn.Close()
		}
	}},
	{"connections without credentials", func(t *testing.T, n *node, random *rand.Rand) {
		var made []*raw
		for i := range 200 {
			r := knock(t, n)
			if i%2 == 0 {
				r.call(scheduleMethod, "an-unknown-token")
			}
			made = append(made, r)
		}
		lasting(t, time.Duration(random.IntN(500))*time.Millisecond)
		for _, r := range made {
			_ = r.Close()
		}
	}},
	{"all connections of a principal", func(t *testing.T, n *node, random *rand.Rand) {
		var made []*grpc.ClientConn
		for range 150 {
			conn := n.dial(t)
			_ = conn.Invoke(bearing(t.Context(), malloryToken), rpc.Timers_GetTopicStats_FullMethodName, &messages.GetTopicStatsRequest{Topic: n.topic.Name()}, &messages.GetTopicStatsResponse{})
			made = append(made, conn)
		}
		for _, conn := range made {
			_ = conn.Close()
		}
	}},
}
