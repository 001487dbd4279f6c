package wire

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

// RedialFirst and RedialMax bound the pause before a link that broke is dialled again.
const (
	RedialFirst = 50 * time.Millisecond
	RedialMax   = 2 * time.Second
)

// HostPort splits an address, whose port has to be a number.
func HostPort(address string) (host string, port int, err error) {
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

// DialTimeout bounds one try to connect.
const DialTimeout = 5 * time.Second

// PingAfter is after how long without a word a link is asked whether it is there.
const PingAfter = 10 * time.Second

// PingTimeout is how long the answer to a ping may take.
const PingTimeout = 5 * time.Second

// Pings are those of a Client to a Server, which takes them. A peer may be a
// stock gRPC server, which does not.
var Pings = keepalive.ClientParameters{Time: PingAfter, Timeout: PingTimeout, PermitWithoutStream: true}

// DialOptions are those for dialling; nil: without TLS.
func DialOptions(tls *tls.Config, maxMessage int) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithTransportCredentials(Transport(tls)),
		// Its own would have whoever was away for minutes wait for two more.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: RedialFirst, Multiplier: 2, Jitter: 0.2, MaxDelay: RedialMax / 4},
			MinConnectTimeout: DialTimeout,
		}),
		grpc.WithNoProxy(),
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(Frames{}),
			grpc.MaxCallRecvMsgSize(maxMessage),
			grpc.MaxCallSendMsgSize(maxMessage),
		),
	}
}

// Transport returns the credentials of a connection; nil: without TLS.
func Transport(cfg *tls.Config) credentials.TransportCredentials {
	if cfg == nil {
		return insecure.NewCredentials()
	}
	return credentials.NewTLS(cfg)
}
