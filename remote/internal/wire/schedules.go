package wire

import (
	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
)

// DumpMessage converts an exported recurring schedule to a message.
func DumpMessage(d wakebell.ScheduleDump) *messages.RecurringDump {
	return &messages.RecurringDump{Name: d.Name, Definition: d.Definition, Meta: d.Meta, Wakebell: d.Wakebell}
}

// DumpOf is the inverse of DumpMessage.
func DumpOf(m *messages.RecurringDump) wakebell.ScheduleDump {
	return wakebell.ScheduleDump{
		Name: m.GetName(), Definition: m.GetDefinition(), Meta: m.GetMeta(), Wakebell: m.GetWakebell(),
	}
}
