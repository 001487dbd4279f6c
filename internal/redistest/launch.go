package redistest

import "os"

// Launch runs a redis-server for a program that is no test, until Close. It
// keeps nothing on disk, unless args say otherwise, as with [Start].
func Launch(args ...string) (*Server, error) { return startTemp(args...) }

// Close ends a server of Launch and removes its directory.
func (s *Server) Close() error {
	s.Stop()
	return os.RemoveAll(s.dir)
}
