package baseline

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "github.com/wakebell/wakebell/messages/rpc"
)

// The listing has all that the bytes and the JSON of messages depend on.
func TestMessages(t *testing.T) {
	t.Parallel()
	var lines []string
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		if strings.HasPrefix(string(file.Package()), "wakebell") {
			lines = append(lines, messagesOf(file.Messages())...)
			lines = append(lines, enumsOf(file.Enums())...)
			lines = append(lines, servicesOf(file.Services())...)
		}
		return true
	})
	Require(t, "messages.txt", lines)
}

func messagesOf(messages protoreflect.MessageDescriptors) (lines []string) {
	for i := range messages.Len() {
		message := messages.Get(i)
		lines = append(lines, fmt.Sprintf("message %s", message.FullName()))
		for f := range message.Fields().Len() {
			lines = append(lines, fieldOf(message.Fields().Get(f)))
		}
		for r := range message.ReservedRanges().Len() {
			of := message.ReservedRanges().Get(r)
			lines = append(lines, fmt.Sprintf("message %s: reserved %d to %d", message.FullName(), of[0], of[1]-1))
		}
		lines = append(lines, messagesOf(message.Messages())...)
		lines = append(lines, enumsOf(message.Enums())...)
	}
	return lines
}

func fieldOf(field protoreflect.FieldDescriptor) string {
	kind := field.Kind().String()
	switch {
	case field.Message() != nil:
		kind = string(field.Message().FullName())
	case field.Enum() != nil:
		kind = string(field.Enum().FullName())
	}
	text := fmt.Sprintf("message %s: %d %s %s %s, JSON %s", field.Parent().FullName(), field.Number(), field.Name(), field.Cardinality(), kind, field.JSONName())
	if oneof := field.ContainingOneof(); oneof != nil {
		text += fmt.Sprintf(", oneof %s", oneof.Name())
	}
	return text
}

func enumsOf(enums protoreflect.EnumDescriptors) (lines []string) {
	for i := range enums.Len() {
		enum := enums.Get(i)
		for v := range enum.Values().Len() {
			value := enum.Values().Get(v)
			lines = append(lines, fmt.Sprintf("enum %s: %s = %d", enum.FullName(), value.Name(), value.Number()))
		}
	}
	return lines
}

func servicesOf(services protoreflect.ServiceDescriptors) (lines []string) {
	stream := map[bool]string{true: "stream "}
	for i := range services.Len() {
		service := services.Get(i)
		for m := range service.Methods().Len() {
			method := service.Methods().Get(m)
			lines = append(lines, fmt.Sprintf("service %s: %s(%s%s) %s%s", service.FullName(), method.Name(),
				stream[method.IsStreamingClient()], method.Input().FullName(), stream[method.IsStreamingServer()], method.Output().FullName()))
		}
	}
	return lines
}
