// Package grants proves on a real API server how grants and Locations are copied. That
// server is hub, platform and every project at once, which is allowed: copies are no source.
package grants

import (
	"fmt"
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"go.datum.net/network-presence/api/v1alpha"
)

var (
	// hub reads from and writes to the API server itself.
	hub    client.Client
	access *rest.Config
	scheme = runtime.NewScheme()
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Background())
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e/grants:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha.AddToScheme} {
		if err := add(scheme); err != nil {
			return 0, err
		}
	}
	server := &envtest.Environment{
		CRDDirectoryPaths:        []string{"../../api/crds"},
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: 2 * time.Minute, // on a machine that builds meanwhile
	}
	if access, err = server.Start(); err != nil {
		return 0, fmt.Errorf("start an API server: %w", err)
	}
	defer func() {
		if stopped := server.Stop(); stopped != nil && err == nil {
			err = fmt.Errorf("stop the API server: %w", stopped)
		}
	}()
	access.QPS = -1
	if hub, err = client.New(access, client.Options{Scheme: scheme}); err != nil {
		return 0, err
	}
	return m.Run(), nil
}
