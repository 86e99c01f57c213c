package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// lifetime of the certificates: longer than anyone leaves a control plane up.
const lifetime = 30 * 24 * time.Hour

// authority signs the certificates of one control plane.
type authority struct {
	folder      string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	serial      atomic.Int64 // of the certificate issued last
}

// newAuthority makes an authority and writes ca.crt to the folder.
func newAuthority(folder string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the authority's key: %w", err)
	}
	template := certificateTemplate(1, pkix.Name{CommonName: "network-presence-e2e"})
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage |= x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make the authority's certificate: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read the authority's certificate: %w", err)
	}
	a := &authority{folder: folder, certificate: certificate, key: key}
	a.serial.Store(1)
	return a, writePEM(a.file("ca.crt"), "CERTIFICATE", der)
}

func (a *authority) file(name string) string { return filepath.Join(a.folder, name) }

// issue writes name.crt and name.key, for a client or a server on the loopback interface.
func (a *authority) issue(name string, subject pkix.Name) error {
	template := certificateTemplate(a.serial.Add(1), subject)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)}
	template.DNSNames = []string{"localhost", "kubernetes.default.svc", "karmada-aggregated-apiserver.karmada-system.svc"}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make the key of %s: %w", name, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return fmt.Errorf("make the certificate of %s: %w", name, err)
	}
	if err := writePEM(a.file(name+".crt"), "CERTIFICATE", der); err != nil {
		return err
	}
	return writeKey(a.file(name+".key"), key)
}

// serviceAccounts writes the key pair sa.key and sa.pub that signs tokens.
func (a *authority) serviceAccounts() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make the key for service accounts: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("encode the key for service accounts: %w", err)
	}
	if err := writePEM(a.file("sa.pub"), "PUBLIC KEY", public); err != nil {
		return err
	}
	return writeKey(a.file("sa.key"), key)
}

func certificateTemplate(serial int64, subject pkix.Name) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      subject,
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(lifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}

func writeKey(file string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode key %s: %w", file, err)
	}
	return writePEM(file, "EC PRIVATE KEY", der)
}

func writePEM(file, kind string, der []byte) error {
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}
