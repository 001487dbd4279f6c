package cli

import (
	"fmt"
	"io"
	"os"
)

// CertificatesLimit bounds the size of a file of certificates or a key, in bytes.
const CertificatesLimit = 16 << 20

// ReadFile reads a regular file of at most limit bytes. A pipe or a device is an error:
// a file that is read again while the program runs would make it wait for a writer.
func ReadFile(name string, limit int64) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file (%s)", name, info.Mode())
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
