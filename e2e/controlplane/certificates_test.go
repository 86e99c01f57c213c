package controlplane

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestCertificatesServeAndProveWhoAsks(t *testing.T) {
	folder := t.TempDir()
	ca, err := newAuthority(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := ca.issue("admin", pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}}); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(folder, "admin.crt"), filepath.Join(folder, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	authorities := x509.NewCertPool()
	pem, err := os.ReadFile(filepath.Join(folder, "ca.crt"))
	if err != nil || !authorities.AppendCertsFromPEM(pem) {
		t.Fatalf("ca.crt is no certificate: %v", err)
	}
	for _, host := range []string{"127.0.0.1", "localhost", "karmada-aggregated-apiserver.karmada-system.svc"} {
		_, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: authorities, DNSName: host, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
		if err != nil {
			t.Errorf("as the server of %s: %v", host, err)
		}
	}
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: authorities, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Errorf("as a client: %v", err)
	}
	if pair.Leaf.IsCA {
		t.Error("the administrator's certificate may sign others")
	}
}

func TestCertificatesIssuedAtOnceDiffer(t *testing.T) {
	folder := t.TempDir()
	ca, err := newAuthority(folder)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"a", "b", "c", "d"}
	var group sync.WaitGroup
	for _, name := range names {
		group.Go(func() {
			if err := ca.issue(name, pkix.Name{CommonName: name}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	serials := map[string]string{ca.certificate.SerialNumber.String(): "the authority"}
	for _, name := range names {
		pair, err := tls.LoadX509KeyPair(filepath.Join(folder, name+".crt"), filepath.Join(folder, name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		serial := pair.Leaf.SerialNumber.String()
		if other, taken := serials[serial]; taken {
			t.Errorf("%s has serial number %s, as has %s", name, serial, other)
		}
		serials[serial] = name
	}
}
