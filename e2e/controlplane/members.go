package controlplane

import (
	"context"
	"fmt"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
)

// AddCell starts a cell and joins it, as Start does for those of Options. What it started
// before it failed runs until Stop.
func (c *ControlPlane) AddCell(ctx context.Context, cell Cell) error {
	if err := cell.validate(); err != nil {
		return err
	}
	return c.guarded(ctx, func(ctx context.Context) error {
		if err := c.startCell(ctx, cell); err != nil {
			return err
		}
		if c.options.Bare {
			return nil
		}
		return c.join(ctx, cell)
	})
}

// Join makes a cell that was unjoined a member of Karmada again, and returns once it is
// Ready.
func (c *ControlPlane) Join(ctx context.Context, name string) error {
	cell, err := c.cell(name)
	if err != nil {
		return err
	}
	return c.guarded(ctx, func(ctx context.Context) error { return c.join(ctx, cell) })
}

// Unjoin takes a cell out of Karmada and returns once its Cluster is gone. Karmada deletes
// what it placed there, unless the cell cannot be reached. The cell goes on running.
func (c *ControlPlane) Unjoin(ctx context.Context, name string) error {
	cell, err := c.cell(name)
	if err != nil {
		return err
	}
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := client.IgnoreNotFound(c.Hub().Client.Delete(ctx, cluster)); err != nil {
		return fmt.Errorf("unjoin cell %s: %w", name, err)
	}
	err = c.retry(ctx, "cell "+name+" to be unjoined", func(ctx context.Context) error {
		err := c.Hub().Client.Get(ctx, client.ObjectKeyFromObject(cluster), cluster)
		if err == nil {
			return fmt.Errorf("its Cluster is still there, with finalizers %q", cluster.Finalizers)
		}
		return client.IgnoreNotFound(err)
	})
	if err != nil {
		return err
	}
	if cell.Pull {
		return c.Forget(ctx, KarmadaAgentProcess(name))
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: clustersNamespace, Name: name}}
	if err := client.IgnoreNotFound(c.Hub().Client.Delete(ctx, secret)); err != nil {
		return fmt.Errorf("unjoin cell %s: delete its Secret: %w", name, err)
	}
	return nil
}

// RemoveCell unjoins a cell and ends it. One that is added under its name later is another
// cell, and empty.
func (c *ControlPlane) RemoveCell(ctx context.Context, name string) error {
	cell, err := c.cell(name)
	if err != nil {
		return err
	}
	if !c.options.Bare {
		if err := c.Unjoin(ctx, name); err != nil {
			return err
		}
	}
	plane := c.Cell(name)
	parts := []string{plane.Process()}
	if !c.options.Bare {
		parts = append(parts, plane.controllers())
	}
	if cell.Agent {
		parts = append(parts, CellAgentProcess(name))
	}
	for _, part := range parts {
		if err := c.Forget(ctx, part); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.planes, plane.Name)
	delete(c.cells, name)
	return nil
}

// cell is what was asked for under the name, and an error where there is no such cell.
func (c *ControlPlane) cell(name string) (Cell, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cell, found := c.cells[name]
	if !found {
		return Cell{}, fmt.Errorf("the control plane has no cell %q", name)
	}
	return cell, nil
}

// join makes a cell a member of Karmada and returns once it is Ready.
func (c *ControlPlane) join(ctx context.Context, cell Cell) error {
	join := c.push
	if cell.Pull {
		join = c.pull
	}
	if err := join(ctx, cell); err != nil {
		return fmt.Errorf("join cell %s: %w", cell.Name, err)
	}
	return c.awaitCell(ctx, cell.Name)
}

// push has Karmada's controllers on the hub reach into the cell.
func (c *ControlPlane) push(ctx context.Context, cell Cell) error {
	member := c.Cell(cell.Name)
	token, err := memberToken(ctx, member, "karmada-"+cell.Name)
	if err != nil {
		return err
	}
	ca, err := c.ca()
	if err != nil {
		return err
	}
	var system corev1.Namespace
	if err := member.Client.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &system); err != nil {
		return fmt.Errorf("read its identity: %w", err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: clustersNamespace, Name: cell.Name},
		Data:       map[string][]byte{"token": []byte(token), "caBundle": ca},
	}
	reference := &clusterv1alpha1.LocalSecretReference{Namespace: secret.Namespace, Name: secret.Name}
	cluster := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: cell.Name, Labels: cell.labels()},
		Spec: clusterv1alpha1.ClusterSpec{
			ID: string(system.UID), SyncMode: clusterv1alpha1.Push, APIEndpoint: member.Config.Host,
			SecretRef: reference, ImpersonatorSecretRef: reference,
		},
	}
	return create(ctx, c.Hub(), secret, cluster)
}

// labels are those of the cell's Cluster.
func (c Cell) labels() map[string]string {
	if c.Location == "" {
		return nil
	}
	return map[string]string{v1alpha.TopologyLocationLabel: c.Location}
}

// memberToken makes the account by which Karmada acts in a cell, where it is not there yet.
func memberToken(ctx context.Context, member *Plane, name string) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: clustersNamespace, Name: name}}
	err := ensure(ctx, member,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clustersNamespace}},
		account,
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: clustersNamespace, Name: name}},
		})
	if err != nil {
		return "", err
	}
	return accountToken(ctx, member, account)
}

// accountToken makes a token of a ServiceAccount.
func accountToken(ctx context.Context, plane *Plane, account *corev1.ServiceAccount) (string, error) {
	seconds := int64(lifetime.Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if err := plane.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("make a token of ServiceAccount %s in %s: %w", account.Name, plane.Name, err)
	}
	return request.Status.Token, nil
}

func (c *ControlPlane) awaitCell(ctx context.Context, name string) error {
	return c.retry(ctx, "cell "+name+" to be Ready", func(ctx context.Context) error {
		var cluster clusterv1alpha1.Cluster
		if err := c.Hub().Client.Get(ctx, client.ObjectKey{Name: name}, &cluster); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady) {
			return fmt.Errorf("its conditions are %v", cluster.Status.Conditions)
		}
		return nil
	})
}

// create makes objects that are not there.
func create(ctx context.Context, plane *Plane, objects ...client.Object) error {
	for _, object := range objects {
		if err := plane.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("create %T %q on %s: %w", object, object.GetName(), plane.Name, err)
		}
	}
	return nil
}

// ensure makes objects that may be there already, and are then left as they are.
func ensure(ctx context.Context, plane *Plane, objects ...client.Object) error {
	for _, object := range objects {
		if err := create(ctx, plane, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}
