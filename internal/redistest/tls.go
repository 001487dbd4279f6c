package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// TLSServer is a server that also listens for TLS, and requires client certificates.
type TLSServer struct {
	*Server

	// TLSAddr is the host:port with TLS; Addr is the one without.
	TLSAddr string
	// CA, Cert and Key are PEM files: the certificate of the authority that signed
	// both sides, and the certificate and key of a client.
	CA, Cert, Key string
	// Name is the host name in the server's certificate, beside 127.0.0.1.
	Name string
}

// StartTLS is [Start] with TLS, certificates and a new certificate authority.
func StartTLS(t testing.TB, args ...string) *TLSServer {
	t.Helper()
	dir := t.TempDir()
	s := &TLSServer{Name: "redis.test"}
	ca := newAuthority(t, dir)
	s.CA = ca.file
	s.Cert, s.Key = ca.issue(t, "client")
	cert, key := ca.issue(t, "server", s.Name)
	s.Server = startWith(t, dir, func(port int) ([]string, error) {
		tlsPort, err := freePort()
		s.TLSAddr = address(tlsPort)
		return append(serverArgs(port, dir, args), "--tls-port", strconv.Itoa(tlsPort),
			"--tls-ca-cert-file", s.CA, "--tls-cert-file", cert, "--tls-key-file", key), err
	})
	return s
}

// authority signs certificates.
type authority struct {
	dir, file string
	cert      *x509.Certificate
	key       *ecdsa.PrivateKey
}

func newAuthority(t testing.TB, dir string) *authority {
	t.Helper()
	a := &authority{dir: dir, file: filepath.Join(dir, "ca.crt"), key: newKey(t)}
	template := certificate("redistest")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err == nil {
		a.cert, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatalf("redistest: create a certificate authority: %v", err)
	}
	writePEM(t, a.file, "CERTIFICATE", der)
	return a
}

// issue writes a certificate and its key.
func (a *authority) issue(t testing.TB, name string, hosts ...string) (certFile, keyFile string) {
	t.Helper()
	key := newKey(t)
	template := certificate(name)
	template.DNSNames = hosts
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatalf("redistest: certificate of %s: %v", name, err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatalf("redistest: key of %s: %v", name, err)
	}
	certFile, keyFile = filepath.Join(a.dir, name+".crt"), filepath.Join(a.dir, name+".key")
	writePEM(t, certFile, "CERTIFICATE", der)
	writePEM(t, keyFile, "EC PRIVATE KEY", keyDER)
	return certFile, keyFile
}

func certificate(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("redistest: create a key: %v", err)
	}
	return key
}

func writePEM(t testing.TB, file, kind string, der []byte) {
	t.Helper()
	block := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(file, block, 0o600); err != nil {
		t.Fatalf("redistest: %v", err)
	}
}
