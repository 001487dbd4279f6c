package dashboard_test

import (
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/dashboard"
	"github.com/wakebell/wakebell/gate"
)

func ExampleNew() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	conn, err := connection.New(rdb, connection.Config{})
	check(err)
	client, err := wakebell.NewClient(conn)
	check(err)
	gates, err := gate.New(conn, gate.Config{})
	check(err)
	d, err := dashboard.New(conn, dashboard.Operators{
		Timers: client, Queues: client.Queues(), Schedules: client.Schedules(), Gates: gates,
	}, dashboard.Config{Path: "/admin/wakebell", Writable: true, Authorize: authorize})
	check(err)
	defer d.Close()

	mux := http.NewServeMux()
	mux.Handle("/admin/wakebell/", d)
	probes := &http.Server{Addr: "localhost:8081", Handler: d.HealthHandler()}
	go func() { log.Print(probes.ListenAndServe()) }()
	server := &http.Server{Addr: "localhost:8080", Handler: mux}
	server.RegisterOnShutdown(d.Close)
}

// authorize trusts the headers of a single sign-on proxy.
func authorize(r *http.Request) (dashboard.Principal, dashboard.Role, error) {
	user := r.Header.Get("X-Auth-Request-User")
	switch {
	case user == "":
		return "", dashboard.RoleNone, dashboard.ErrUnauthenticated
	case strings.Contains(r.Header.Get("X-Auth-Request-Groups"), "oncall"):
		return dashboard.Principal(user), dashboard.RoleOperator, nil
	default:
		return dashboard.Principal(user), dashboard.RoleViewer, nil
	}
}

func ExampleConfig() {
	cfg := dashboard.Config{
		Redact: func(p dashboard.Payload) wakebell.Content {
			if p.Topic == "payments" {
				return wakebell.Content{ContentType: p.ContentType, Body: []byte("(card data)")}
			}
			return p.Content
		},
		TraceURL: "trace.example.com/{trace}",
	}
	fmt.Println(cfg.Validate())
	// Output:
	// invalid argument: TraceURL: "trace.example.com/{trace}", want an http or https address with {trace}
}

func ExampleReadCredentials() {
	users, err := dashboard.ReadCredentials(strings.NewReader("otto:operator:correct-horse-battery"))
	check(err)
	for _, user := range users {
		fmt.Println(user.Name, user.Role.String())
	}
	_, err = dashboard.ReadCredentials(strings.NewReader("vera:viewer:short"))
	fmt.Println(err)
	// Output:
	// otto operator
	// line 1 of the credentials: secret of "vera": 5 bytes, want 16 to 4096
}

// A dashboard may have any operators that implement the interfaces.
func ExampleOperators() {
	var timers dashboard.Timers = &wakebell.Client{}
	var queues dashboard.Queues = (&wakebell.Client{}).Queues()
	_, err := dashboard.New(nil, dashboard.Operators{Timers: timers, Queues: queues}, dashboard.Config{
		Credentials: []dashboard.Credential{{Name: "vera", Role: dashboard.RoleViewer, Secret: "short"}},
	})
	fmt.Println(err)
	// Output:
	// invalid argument: Credentials: number 0: secret of "vera": 5 bytes, want 16 to 4096
}

func ExampleDashboard_ServeHTTP() {
	var d *dashboard.Dashboard // from New
	http.HandleFunc("/wakebell/", func(w http.ResponseWriter, r *http.Request) { d.ServeHTTP(w, r) })
}

func check(err error) {
	if err != nil {
		log.New(os.Stderr, "", 0).Fatal(err)
	}
}
