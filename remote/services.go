package remote

import (
	"errors"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// services are those beside protoactor's own on the same port. Its server
// cannot be reached from outside to register them, so they are served by its
// handler for what is unknown.
type services struct {
	byName map[string]service
}

type service struct {
	desc *grpc.ServiceDesc
	impl any
}

// RegisterService implements grpc.ServiceRegistrar.
func (s *services) RegisterService(desc *grpc.ServiceDesc, impl any) {
	if s.byName == nil {
		s.byName = map[string]service{}
	}
	s.byName[desc.ServiceName] = service{desc, impl}
}

// GetServiceInfo tells reflection what there is.
func (s *services) GetServiceInfo() map[string]grpc.ServiceInfo {
	all := map[string]grpc.ServiceInfo{}
	for name, of := range s.byName {
		info := grpc.ServiceInfo{Metadata: of.desc.Metadata}
		for _, m := range of.desc.Methods {
			info.Methods = append(info.Methods, grpc.MethodInfo{Name: m.MethodName})
		}
		for _, m := range of.desc.Streams {
			info.Methods = append(info.Methods, grpc.MethodInfo{Name: m.StreamName, IsClientStream: m.ClientStreams, IsServerStream: m.ServerStreams})
		}
		all[name] = info
	}
	return all
}

var errNoStream = errors.New("a stream without a method")

func (s *services) serve(_ any, stream grpc.ServerStream) error {
	full, ok := grpc.MethodFromServerStream(stream)
	if !ok {
		return status.Error(codes.Internal, errNoStream.Error())
	}
	name, method, _ := strings.Cut(strings.TrimPrefix(full, "/"), "/")
	of, ok := s.byName[name]
	if !ok {
		return status.Errorf(codes.Unimplemented, "there is no service %q", clip(name))
	}
	for i := range of.desc.Methods {
		if m := &of.desc.Methods[i]; m.MethodName == method {
			answer, err := m.Handler(of.impl, stream.Context(), stream.RecvMsg, nil)
			if err != nil {
				return err
			}
			return stream.SendMsg(answer)
		}
	}
	for i := range of.desc.Streams {
		if m := &of.desc.Streams[i]; m.StreamName == method {
			return m.Handler(of.impl, stream)
		}
	}
	return status.Errorf(codes.Unimplemented, "%s has no %q", name, clip(method))
}
