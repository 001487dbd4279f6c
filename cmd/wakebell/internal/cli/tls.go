package cli

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/files"
)

// tlsFlags configure TLS for the servers of a rediss URL and the node of --remote.
type tlsFlags struct {
	ca, cert, key, serverName string
	insecure                  bool
}

func (f *tlsFlags) register(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&f.ca, "tls-ca", "", "PEM `file` with the authorities to trust (default the system's)")
	flags.StringVar(&f.cert, "tls-cert", "", "PEM `file` with this client's certificate")
	flags.StringVar(&f.key, "tls-key", "", "PEM `file` with the key of --tls-cert")
	flags.StringVar(&f.serverName, "tls-server-name", "", "`name` to expect in the servers' certificates (default the host of each)")
	flags.BoolVar(&f.insecure, "tls-insecure", false, "do not verify certificates: an impostor gets the password")
	CompleteFiles(root, "tls-ca", "tls-cert", "tls-key")
}

// check rejects flags that have no effect, or are incomplete.
func (f tlsFlags) check(where string, encrypted bool) error {
	switch {
	case !encrypted && f != tlsFlags{}:
		return Usagef("--tls flags are for %s; this one is not encrypted", where)
	case (f.cert == "") != (f.key == ""):
		return Usagef("--tls-cert and --tls-key go together")
	default:
		return nil
	}
}

// apply sets the flags on the configuration of a URL; nil stands for one without
// TLS.
func (f tlsFlags) apply(config *tls.Config) (*tls.Config, error) {
	if config == nil {
		return nil, nil
	}
	config.MinVersion = tls.VersionTLS12
	config.InsecureSkipVerify = f.insecure
	if f.serverName != "" {
		config.ServerName = f.serverName
	}
	if f.ca != "" {
		pem, err := files.Read(f.ca, files.CertificatesLimit)
		if err != nil {
			return nil, fmt.Errorf("--tls-ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, Usagef("--tls-ca: no certificate in %s", f.ca)
		}
	}
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
