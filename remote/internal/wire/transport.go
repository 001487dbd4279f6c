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

// RedialFirst and RedialMax are the first and the longest pause before a broken link
// is dialled again.
const (
	RedialFirst = 50 * time.Millisecond
	RedialMax   = 2 * time.Second
)

// HostPort splits an address into its host and its numeric port.
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

// DialTimeout bounds one attempt to connect.
const DialTimeout = 5 * time.Second

// PingAfter is how long a link may be idle before it is pinged.
const PingAfter = 10 * time.Second

// PingTimeout is how long the response to a ping may take.
const PingTimeout = 5 * time.Second

// Pings are the keepalive parameters of a Client. A Server permits them; a peer may
// be a stock gRPC server, which does not.
var Pings = keepalive.ClientParameters{Time: PingAfter, Timeout: PingTimeout, PermitWithoutStream: true}

// DialOptions returns the options for dialling. A nil tls dials without TLS.
func DialOptions(tls *tls.Config, maxMessage int) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithTransportCredentials(Transport(tls)),
		// gRPC's default backoff grows to two minutes.
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

// Transport returns the credentials of a connection, without TLS if cfg is nil.
func Transport(cfg *tls.Config) credentials.TransportCredentials {
	if cfg == nil {
		return insecure.NewCredentials()
	}
	return credentials.NewTLS(cfg)
}
