package files

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// CertificatesLimit bounds the size of a file of certificates or a key, in bytes.
const CertificatesLimit = 16 << 20

// Read reads a regular file of at most limit bytes. A named pipe or a device is an
// error: a file that is read again while the program runs would make it wait for a
// writer. A pipe that the program has got from its shell, as /dev/stdin, has one.
func Read(name string, limit int64) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	inherited := name == "/dev/stdin" || strings.HasPrefix(name, "/dev/fd/")
	if !info.Mode().IsRegular() && !inherited {
		return nil, fmt.Errorf("%s is not a regular file (%s)", name, info.Mode())
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it is only read
	text, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, limit)
	}
	return text, nil
}
