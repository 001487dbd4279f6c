package redistest

import "os"

// Launch starts a redis-server for a program that is not a test, until Close. It
// stores nothing on disk unless args say otherwise, as in [Start].
func Launch(args ...string) (*Server, error) { return startTemp(args...) }

// Close stops a server of Launch and removes its directory.
func (s *Server) Close() error {
	s.Stop()
	return os.RemoveAll(s.dir)
}
