package controlplane

import (
	"context"
	"crypto/x509/pkix"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.datum.net/network-presence/cell"
	"go.datum.net/network-presence/cell/rbac"
)

// CellAgentProcess is the name of the process of our agent in a cell that has one.
func CellAgentProcess(cell string) string { return "cell-" + cell + "-agent" }

// agentUser is whom our agent is in its cell: nobody but the one that its roles are for.
const agentUser = "network-presence-cell"

// startAgent runs `network-presence cell` in a cell.
func (c *ControlPlane) startAgent(ctx context.Context, member *Plane, in Cell) error {
	if err := permitPresenceAgent(ctx, member); err != nil {
		return err
	}
	name := CellAgentProcess(in.Name)
	if err := c.authority.issue(name, pkix.Name{CommonName: agentUser}); err != nil {
		return err
	}
	kubeconfig := c.file(name + ".kubeconfig")
	if err := c.writeUserKubeconfig(member, name, kubeconfig); err != nil {
		return err
	}
	flags, ready, err := c.health("/readyz")
	if err != nil {
		return err
	}
	return c.run(ctx, name, "network-presence", ready, slices.Concat([]string{"cell"}, flags, []string{
		"--kubeconfig=" + kubeconfig, "--location=" + in.Location, "--leader-elect=false", "-v=2",
	})...)
}

// permitPresenceAgent gives our agent the roles that are made for it.
func permitPresenceAgent(ctx context.Context, member *Plane) error {
	namespace := cell.DefaultOptions().LeaderElectionNamespace
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: agentUser}}
	err := ensure(ctx, member, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	if err != nil {
		return err
	}
	if err := apply(ctx, member, rbac.Roles); err != nil {
		return fmt.Errorf("give the agent its roles: %w", err)
	}
	return ensure(ctx, member,
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: cell.LeaseName},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: cell.LeaseName}, Subjects: subjects,
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cell.LeaseName},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: cell.LeaseName}, Subjects: subjects,
		})
}
