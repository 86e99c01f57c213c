package webhook

import (
	"errors"
	"fmt"
	"net"
	"strconv"
)

// The files of Options.CertDir.
const (
	certificateFile = "tls.crt"
	keyFile         = "tls.key"
)

// Options say how a webhook runs. Start from DefaultOptions.
type Options struct {
	// BindAddress is the IP address to serve at; empty for all.
	BindAddress string
	// SecurePort to serve at.
	SecurePort int
	// CertDir has the files tls.crt and tls.key, which are read again when they change.
	CertDir string
	// MetricsAddress and ProbeAddress are served at, as host:port; "0" serves none.
	MetricsAddress string
	ProbeAddress   string
}

// DefaultOptions are Options for a webhook that runs as a Pod.
func DefaultOptions() Options {
	return Options{
		SecurePort:     8443,
		CertDir:        "/var/run/network-presence/serving-certs",
		MetricsAddress: ":8080",
		ProbeAddress:   ":8081",
	}
}

// Validate says which options are wrong, and what is right; nil where none is.
func (o Options) Validate() error {
	var faults []error
	if o.BindAddress != "" && net.ParseIP(o.BindAddress) == nil {
		faults = append(faults, fmt.Errorf("bind address %q is not an IP address: give one like 127.0.0.1, or none for all", o.BindAddress))
	}
	if o.SecurePort < 1 || o.SecurePort > 65535 {
		faults = append(faults, fmt.Errorf("secure port %d is no port: want 1 to 65535", o.SecurePort))
	}
	if o.CertDir == "" {
		faults = append(faults, fmt.Errorf("no certificate directory: name the one that has %s and %s", certificateFile, keyFile))
	}
	return errors.Join(append(faults, validateAddress("metrics", o.MetricsAddress), validateAddress("health probe", o.ProbeAddress))...)
}

func validateAddress(what, address string) error {
	if address == nowhere {
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf(`%s address %q is not host:port, like :8080, nor "0" for nowhere`, what, address)
	}
	return nil
}

// nowhere is the address of what is not to be served.
const nowhere = "0"

func (o Options) address() string {
	return net.JoinHostPort(o.BindAddress, strconv.Itoa(o.SecurePort))
}
