package remote_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
)

// rightsOfRoutes has the right that each route needs, as the table of rights has it for
// the request of gRPC that does the same; empty: the answer is filtered, or it needs none.
var rightsOfRoutes = map[string]string{
	"POST /v1/topics/{topic}/timers":                    "schedule topic",
	"POST /v1/topics/{topic}/timers:batch":              "schedule topic",
	"POST /v1/topics/{topic}/timers:cancel":             "schedule topic",
	"GET /v1/topics/{topic}/timers":                     "read topic",
	"GET /v1/topics/{topic}/timers/{id}":                "read topic",
	"PATCH /v1/topics/{topic}/timers/{id}":              "schedule topic",
	"DELETE /v1/topics/{topic}/timers/{id}":             "schedule topic",
	"POST /v1/topics/{topic}/timers/{id}:run":           "schedule topic",
	"GET /v1/topics/{topic}/timers/{id}/report":         "read topic",
	"GET /v1/topics/{topic}/timers/{id}/join":           "read topic",
	"GET /v1/topics/{topic}/timers/{id}/join/parts":     "read topic",
	"POST /v1/topics/{topic}/timers/{id}/join:add":      "schedule topic",
	"POST /v1/topics/{topic}/timers/{id}/join:close":    "schedule topic",
	"POST /v1/topics/{topic}/timers/{id}/join:cancel":   "schedule topic",
	"GET /v1/topics/{topic}/stats":                      "read topic",
	"POST /v1/queues/{name}/messages":                   "schedule queue",
	"GET /v1/schedules":                                 "",
	"PUT /v1/schedules/{name}":                          "schedule schedule",
	"GET /v1/schedules/{name}":                          "read schedule",
	"DELETE /v1/schedules/{name}":                       "schedule schedule",
	"GET /v1/schedules/{name}/preview":                  "read schedule",
	"POST /v1/schedules/{name}:run":                     "schedule schedule",
	"POST /v1/schedules/{name}:enable":                  "schedule schedule",
	"POST /v1/gates/{gate}/turns":                       "handle gate",
	"POST /v1/gates/{gate}/turns/{token}:extend":        "handle gate",
	"POST /v1/gates/{gate}/turns/{token}:release":       "", // only its owner can
	"POST /v1/gates/{gate}:guard":                       "handle gate",
	"POST /v1/topics/{topic}/leases:claim":              "handle topic",
	"POST /v1/topics/{topic}/leases/{token}:ack":        "handle topic",
	"POST /v1/topics/{topic}/leases/{token}:nack":       "handle topic",
	"POST /v1/topics/{topic}/leases/{token}:reject":     "handle topic",
	"POST /v1/topics/{topic}/leases/{token}:extend":     "handle topic",
	"POST /v1/topics/{topic}/leases/{token}:release":    "handle topic",
	"POST /v1/topics/{topic}/leases/{token}:checkpoint": "handle topic",
	"POST /v1/topics/{topic}/leases/{token}:progress":   "handle topic",
	"POST /v1/queues/{topic}/leases:claim":              "handle queue",
	"POST /v1/queues/{topic}/leases/{token}:ack":        "handle queue",
	"POST /v1/queues/{topic}/leases/{token}:nack":       "handle queue",
	"POST /v1/queues/{topic}/leases/{token}:reject":     "handle queue",
	"POST /v1/queues/{topic}/leases/{token}:extend":     "handle queue",
	"POST /v1/queues/{topic}/leases/{token}:release":    "handle queue",
}

// routesOf lists the routes of a node, by its OpenAPI document.
func (n *node) routesOf(t testing.TB) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for path, methods := range n.http(t, "GET", "/openapi.json", "").ok(t)["paths"].(map[string]any) {
		for method := range methods.(map[string]any) {
			all[strings.ToUpper(method)+" "+path] = true
		}
	}
	return all
}

// requestOf is a request of a route about a name.
func (n *node) requestOf(t testing.TB, route, name, token string) *http.Request {
	t.Helper()
	method, path, _ := strings.Cut(route, " ")
	of := strings.Repeat("A", 32) // a token of a lease
	if strings.Contains(path, "/gates/") {
		of = strings.Repeat("A", 22)
	}
	for _, variable := range []string{"{topic}", "{name}", "{gate}"} {
		path = strings.ReplaceAll(path, variable, name)
	}
	path = strings.NewReplacer("{token}", of, "{id}", "x").Replace(path)
	body := ""
	switch {
	case strings.HasSuffix(path, ":batch"):
		body = `{"timers":[{"in":"1h"}]}`
	case strings.HasSuffix(path, ":claim"):
		body = `{"wait":"1s"}`
	case method == "PUT":
		body = `{"topic":"` + name + `"}`
	case strings.HasSuffix(path, "/turns"):
		body = `{"wait":"0s","ttl":"1s"}`
	}
	return n.request(t, method, path, token, body)
}

func TestEveryRouteNeedsToken(t *testing.T) {
	t.Parallel()
	n := serveHTTP(t, withToken())
	for route := range n.routesOf(t) {
		for _, token := range []string{"", "wrong-token-of-some-length"} {
			a := do(t, n.requestOf(t, route, redistest.Name(t), token))
			a.problem(t, http.StatusUnauthorized, "unauthenticated")
			require.Contains(t, a.header.Get("WWW-Authenticate"), "Bearer", route)
		}
	}
}

// Each route is permitted by the right of its request, and by no other one.
func TestEveryRouteNeedsItsRight(t *testing.T) {
	t.Parallel()
	n := serveHTTP(t, withRights(t, "tests * *"))
	routes := n.routesOf(t)
	for route := range maps.Keys(rightsOfRoutes) {
		require.True(t, routes[route], route)
	}
	for route := range routes {
		right, ok := rightsOfRoutes[route]
		require.True(t, ok, route)
		action, kind, filtered := strings.Cut(right, " ")
		name := redistest.Name(t)
		permitted := func(granted string) bool {
			require.NoError(t, n.server.SetRights(rightsOf(t, "tests * *\n"+granted)))
			a := do(t, n.requestOf(t, route, name, malloryToken))
			require.NotContains(t, a.text, "nothing allows", route)
			require.NotEqual(t, http.StatusInternalServerError, a.status, "%s: %s", route, a.text)
			if a.status == http.StatusForbidden {
				a.problem(t, http.StatusForbidden, "forbidden")
			}
			return a.status != http.StatusForbidden
		}
		if !filtered {
			require.True(t, permitted(""), route)
			continue
		}
		others := strings.TrimPrefix(strings.ReplaceAll(",schedule,handle,read,operate", ","+action, ""), ",")
		objects := fmt.Sprintf("topic:%[1]s queue:%[1]s gate:%[1]s schedule:%[1]s", name)
		require.False(t, permitted("mallory "+others+" "+objects), route)
		require.False(t, permitted("mallory "+action+" "+kind+":another"), route)
		also := ""
		if strings.HasPrefix(route, "PUT") {
			also = " topic:" + name
		}
		require.True(t, permitted("mallory "+action+" "+kind+":"+name+also), route)
	}
}
