package cell

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"go.datum.net/network-presence/api/v1alpha"
	agent "go.datum.net/network-presence/cell"
	"go.datum.net/network-presence/cell/rbac"
)

// here is the location that the cell serves.
const here = "us-central-1"

// asAgent, in the environment, makes this binary the agent that its value describes.
const asAgent = "NETWORK_PRESENCE_CELL_AGENT"

var (
	// cell reads from and writes to the API server itself, as its administrator.
	cell client.WithWatch
	// adminAccess is the administrator's.
	adminAccess *rest.Config
	// agentAccess is the agent's own user, which may do what cell/rbac says.
	agentAccess *rest.Config
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Background())
	if settings := os.Getenv(asAgent); settings != "" {
		os.Exit(runAgent(settings))
	}
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e/cell:", err)
		code = 1
	}
	os.Exit(code)
}

// runAgent is what the command network-presence cell does.
func runAgent(text string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var settings agentSettings
	if err := json.Unmarshal([]byte(text), &settings); err != nil {
		fmt.Fprintln(os.Stderr, "read settings:", err)
		return 1
	}
	if err := agent.Run(ctx, settings.access(), settings.Options); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func runTests(m *testing.M) (code int, err error) {
	scheme := runtime.NewScheme()
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
	access, err := server.Start()
	if err != nil {
		return 0, fmt.Errorf("start an API server: %w", err)
	}
	defer func() {
		if stopped := server.Stop(); stopped != nil && err == nil {
			err = fmt.Errorf("stop the API server: %w", stopped)
		}
	}()
	access.QPS = -1
	adminAccess = access
	if cell, err = client.NewWithWatch(access, client.Options{Scheme: scheme}); err != nil {
		return 0, err
	}
	user, err := server.AddUser(envtest.User{Name: agent.LeaseName}, access)
	if err != nil {
		return 0, fmt.Errorf("add the agent's user: %w", err)
	}
	agentAccess = user.Config()
	if err := permitAgent(context.Background(), agent.LeaseName); err != nil {
		return 0, err
	}
	code = m.Run()
	for _, figure := range figures {
		fmt.Println(figure)
	}
	return code, nil
}

// permitAgent installs the agent's roles and binds its user to them.
func permitAgent(ctx context.Context, user string) error {
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: agent.DefaultOptions().LeaderElectionNamespace}},
	}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(rbac.Roles), 4096)
	for {
		role := &unstructured.Unstructured{}
		if err := documents.Decode(role); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("decode the agent's roles: %w", err)
		}
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role.GetKind(), Name: role.GetName()}
		meta := metav1.ObjectMeta{Name: role.GetName(), Namespace: role.GetNamespace()}
		objects = append(objects, role)
		if role.GetKind() == "Role" {
			objects = append(objects, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
			continue
		}
		objects = append(objects, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
	}
	for _, object := range objects {
		if err := cell.Create(ctx, object); err != nil {
			return fmt.Errorf("create %T %q: %w", object, object.GetName(), err)
		}
	}
	return nil
}
