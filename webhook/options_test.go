package webhook

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestValidate(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Options)
		want   []string
	}{
		"defaults":           {func(*Options) {}, nil},
		"one address":        {func(o *Options) { o.BindAddress = "::1" }, nil},
		"nothing beside":     {func(o *Options) { o.MetricsAddress, o.ProbeAddress = "0", "0" }, nil},
		"a name to bind to":  {func(o *Options) { o.BindAddress = "localhost" }, []string{`bind address "localhost" is not an IP address: give one like 127.0.0.1, or none for all`}},
		"no port":            {func(o *Options) { o.SecurePort = 0 }, []string{"secure port 0 is no port: want 1 to 65535"}},
		"too large a port":   {func(o *Options) { o.SecurePort = 65536 }, []string{"secure port 65536 is no port: want 1 to 65535"}},
		"no certificate":     {func(o *Options) { o.CertDir = "" }, []string{"no certificate directory: name the one that has tls.crt and tls.key"}},
		"metrics at no port": {func(o *Options) { o.MetricsAddress = "127.0.0.1" }, []string{`metrics address "127.0.0.1" is not host:port, like :8080, nor "0" for nowhere`}},
		"probes at a name": {func(o *Options) { o.ProbeAddress = ":http-alt" },
			[]string{`health probe address ":http-alt" is not host:port, like :8080, nor "0" for nowhere`}},
		"two faults": {func(o *Options) { o.SecurePort, o.CertDir = -1, "" }, []string{
			"secure port -1 is no port: want 1 to 65535",
			"no certificate directory: name the one that has tls.crt and tls.key",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			options := DefaultOptions()
			test.change(&options)
			var got []string
			if err := options.Validate(); err != nil {
				got = strings.Split(err.Error(), "\n")
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}
