package partition_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/partition"
)

// echo runs a server that answers each byte with the same one, and counts them.
func echo(t *testing.T) (address string, received chan byte) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	received = make(chan byte, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close() //nolint:errcheck // the test may have ended
				one := make([]byte, 1)
				for {
					if _, err := c.Read(one); err != nil {
						return
					}
					received <- one[0]
					if _, err := c.Write(one); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String(), received
}

// dial connects from a host. Linux has all addresses of 127.0.0.0/8, others only the first.
func dial(t *testing.T, host, address string) net.Conn {
	t.Helper()
	c, err := partition.Dialer(host)(t.Context(), "tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func send(t *testing.T, c net.Conn, b byte) {
	t.Helper()
	_, err := c.Write([]byte{b})
	require.NoError(t, err)
}

func receive(t *testing.T, c net.Conn, want byte) {
	t.Helper()
	one := make([]byte, 1)
	_, err := c.Read(one)
	require.NoError(t, err)
	require.Equal(t, want, one[0])
}

// answered reports whether a byte arrives within a moment.
func answered(t *testing.T, c net.Conn) bool {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	defer func() { require.NoError(t, c.SetReadDeadline(time.Time{})) }()
	_, err := c.Read(make([]byte, 1))
	return err == nil
}

// A cut holds requests, replies or both of one pair of hosts; others go on, and what was
// held arrives afterwards.
func TestCutHoldsBytesOfItsDirection(t *testing.T) {
	t.Parallel()
	a, b, other := partition.Host(1), partition.Host(2), partition.Host(3)
	n := partition.NewNetwork(t)
	address, received := echo(t)
	port := n.Listen(t, b)
	port.To(address)
	near, far, beside := dial(t, b, port.Addr), dial(t, a, port.Addr), dial(t, other, port.Addr)
	for _, c := range []net.Conn{near, far, beside} {
		send(t, c, 'x')
		receive(t, c, 'x')
		require.Equal(t, byte('x'), <-received)
	}

	n.Block([]string{a}, []string{b}) // requests
	send(t, far, '1')
	for _, c := range []net.Conn{near, beside} {
		send(t, c, '2')
		receive(t, c, '2')
		require.Equal(t, byte('2'), <-received)
	}
	require.False(t, answered(t, far))
	n.Heal()
	receive(t, far, '1')
	require.Equal(t, byte('1'), <-received)

	n.Block([]string{b}, []string{a}) // replies
	send(t, far, '3')
	require.Equal(t, byte('3'), <-received)
	require.False(t, answered(t, far))
	n.Heal()
	receive(t, far, '3')
}

// A connection that is opened during a cut reaches no server, and ends with the cut.
func TestConnectionOfCutIsNeverEstablished(t *testing.T) {
	t.Parallel()
	a, b := partition.Host(1), partition.Host(2)
	n := partition.NewNetwork(t)
	address, received := echo(t)
	port := n.Listen(t, b)
	port.To(address)
	n.Block([]string{b}, []string{a})
	c := dial(t, a, port.Addr)
	send(t, c, '1')
	require.False(t, answered(t, c))
	n.Heal()
	_, err := c.Read(make([]byte, 1))
	require.Error(t, err)
	again := dial(t, a, port.Addr)
	send(t, again, '2')
	receive(t, again, '2')
	require.Equal(t, byte('2'), <-received, "the held one was sent")
}
