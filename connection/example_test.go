package connection_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/embedded"
	"github.com/wakebell/wakebell/queue"
)

func ExampleNew() {
	server := embedded.Start() // in a program: redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer server.Close()
	conn, err := connection.New(server.Client(), connection.Config{Prefix: "shop:"})
	check(err)
	client, err := wakebell.NewClient(conn)
	check(err)
	queues, err := queue.NewClient(conn)
	check(err)
	fmt.Println(client.Prefix(), queues != nil)
	// Output: shop: true
}

// The error names each field that is wrong.
func ExampleConfig() {
	rdb := redis.NewClient(&redis.Options{})
	defer func() { check(rdb.Close()) }()
	_, err := connection.New(rdb, connection.Config{PayloadLimit: -1, MetricTopics: -1})
	fmt.Println(errors.Is(err, wakebell.ErrInvalid))
	fmt.Println(err)
	// Output:
	// true
	// invalid argument: PayloadLimit: -1 is not within 0 and 536870912
	// invalid argument: MetricTopics: -1 is not within 0 and 100000
}

// A connection without Redis is for remote.Dial, dashboard.New and outbox.New.
func ExampleWithoutRedis() {
	conn, err := connection.WithoutRedis(connection.Config{PayloadLimit: 1 << 16})
	check(err)
	_, err = wakebell.NewClient(conn)
	fmt.Println(err)
	// Output: invalid argument: conn: it has no Redis; make it with connection.New
}

// Nodes and clients soon ask another Sentinel when the one that they ask is cut off.
func ExampleFailoverOptions() {
	rdb := redis.NewFailoverClient(connection.FailoverOptions(&redis.FailoverOptions{
		MasterName: "mymaster", SentinelAddrs: []string{"10.0.0.1:26379", "10.0.0.2:26379", "10.0.0.3:26379"},
	}))
	defer func() { check(rdb.Close()) }()
	fmt.Println(rdb.Options().ReadTimeout == connection.DefaultSilence)
	// Output: true
}

func ExampleConnection() {
	server := embedded.Start()
	defer server.Close()
	conn, err := connection.New(server.Client(), connection.Config{})
	check(err)
	fmt.Println(conn.Config().PayloadLimit == connection.DefaultPayloadLimit)
	fmt.Println(conn.Redis() != nil)
	// Output:
	// true
	// true
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
