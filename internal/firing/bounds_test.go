package firing

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/recur"
)

// Stored rules that exceed the bounds of computation are not fired; the others fire on
// time.
func TestStoredRulesWithoutEnd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for name, rule := range map[string]string{
			"count": `"freq":3,"count":10000000`, "never": `"freq":3,"bymonth":2,"bymonthday":30`, "easter": `"freq":0,"byeaster":-300`,
			"week": `"freq":2,"byweekday":[0],"bysetpos":300`, "phase": `"freq":6,"interval":3600,"byminute":7`,
		} {
			raw := recur.Raw{
				Definition: fmt.Appendf(nil, `{"name":%q,"task":"topic","schedule":{"__type__":"rrule",%s,"dtstart":0},"enabled":true}`, name, rule),
				Meta:       recur.Meta{LastRunAt: time.Now()}.Bytes(),
			}
			w.write(name, raw, 5)
		}
		w.put("good", 10*time.Second, nil)
		w.engine(nil)
		w.advance(35 * time.Second)
		require.Equal(t, "good@10#1 good@20#2 good@30#3", w.recorded())
	})
}
