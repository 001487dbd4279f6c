// Package incidents produces what goes wrong in operation, with real processes, a real
// redis-server and a real Prometheus, and checks what an operator sees: which alert of
// deploy/prometheus fires, what the overview of the dashboard, doctor and explain say, and
// how soon. `make incidents` runs it for minutes; `make test` produces one of
// them, without a bound on its times.
//
// An incident is a row of the table in table_test.go. The `for:` of the alerts is
// shortened; their expressions are those of operators.
package incidents
