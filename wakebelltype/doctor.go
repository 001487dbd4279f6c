package wakebelltype

// Grade is the severity of a Finding.
type Grade string

const (
	// GradeGood means that the check passed.
	GradeGood Grade = "good"
	// GradeWarn means that timers may be late or lost in the case that the Finding
	// names.
	GradeWarn Grade = "warn"
	// GradeBad means that timers are not stored, not delivered or not safe.
	GradeBad Grade = "bad"
	// GradeUnknown means that the check could not run; the Finding gives the reason.
	GradeUnknown Grade = "unknown"
)

// Finding is the result of one check of Diagnose, with advice if the check did not
// pass.
type Finding struct {
	Check  string `json:"check"`  // stable name of the check; docs/cli.md lists them
	Server string `json:"server"` // host:port of the checked master in a Cluster; else empty
	Topic  string `json:"topic"`  // the checked topic; empty for a check of the server
	Grade  Grade  `json:"grade"`
	Found  string `json:"found"` // what the check found
	Do     string `json:"do"`    // recommended action; empty if none is needed
}
