package wire

import (
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/recurring"
)

// DumpMessage converts an exported recurring schedule to a message.
func DumpMessage(d recurring.Dump) *messages.RecurringDump {
	return &messages.RecurringDump{Name: d.Name, Definition: d.Definition, Meta: d.Meta, Wakebell: d.Wakebell}
}

// DumpOf is the inverse of DumpMessage.
func DumpOf(m *messages.RecurringDump) recurring.Dump {
	return recurring.Dump{
		Name: m.GetName(), Definition: m.GetDefinition(), Meta: m.GetMeta(), Wakebell: m.GetWakebell(),
	}
}
