package remote

import (
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

const redialFirst, redialMax = 50 * time.Millisecond, 2 * time.Second

func hostPort(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	port, err = strconv.Atoi(text)
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("port %q is not within 0 and 65535", text)
	}
	return host, port, nil
}

const dialTimeout = 5 * time.Second

// A link that says nothing is asked after pingAfter whether it is there, and
// given up when it does not answer within pingTimeout.
const pingAfter = 10 * time.Second

const pingTimeout = 5 * time.Second

// pings are those of a Client to a Server, which takes them. A peer may be a
// stock gRPC server, which does not.
var pings = keepalive.ClientParameters{Time: pingAfter, Timeout: pingTimeout, PermitWithoutStream: true}

// dialOptions are those for dialling; nil: without TLS.
func dialOptions(tls *tls.Config, maxMessage int) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithTransportCredentials(transport(tls)),
		// Its own would have whoever was away for minutes wait for two more.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: redialFirst, Multiplier: 2, Jitter: 0.2, MaxDelay: redialMax / 4},
			MinConnectTimeout: dialTimeout,
		}),
		grpc.WithNoProxy(),
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(frames{}),
			grpc.MaxCallRecvMsgSize(maxMessage),
			grpc.MaxCallSendMsgSize(maxMessage),
		),
	}
}

func transport(cfg *tls.Config) credentials.TransportCredentials {
	if cfg == nil {
		return insecure.NewCredentials()
	}
	return credentials.NewTLS(cfg)
}
