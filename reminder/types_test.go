package reminder_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// unregistered is a message with a type that is in no registry.
func unregistered(t testing.TB) proto.Message {
	t.Helper()
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("nowhere.proto"), Package: proto.String("nowhere"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("Message")}},
	}, nil)
	require.NoError(t, err)
	return dynamicpb.NewMessage(file.Messages().Get(0))
}
