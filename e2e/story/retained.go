package story

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"go.datum.net/network-presence/api/v1alpha"
)

// retainedSteps tell of an address that outlives the one who asked for it.
func retainedSteps(s *Stage) []Step {
	var kept types.UID
	return []Step{
		{
			Does:  fmt.Sprintf("the load balancer gets an address in the cell of %s, a NetworkInterface, and is deleted, but the address is retained", s.Near),
			Shows: "the network stays under it: Declared=False, " + v1alpha.ReasonAddressesHeld + ", context and copy in place",
			run: func(ctx context.Context, s *Stage) (err error) {
				kept, err = retain(ctx, s)
				return err
			},
		}, {
			Does:  "the load balancer comes back, with a new binding",
			Shows: "it is Ready with the context that was there all along, and the address is the same",
			run:   func(ctx context.Context, s *Stage) error { return comeBack(ctx, s, kept) },
		},
	}
}

func (s *Stage) address() *v1alpha.NetworkInterface {
	return &v1alpha.NetworkInterface{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: loadBalancer},
		Spec:       v1alpha.NetworkInterfaceSpec{Network: v1alpha.LocalNetworkReference{Name: "default"}},
	}
}

// retain hands out an address, in the place of whatever allocates them, and takes the
// binding away. It returns the UID of the context that stays.
func retain(ctx context.Context, s *Stage) (types.UID, error) {
	if err := create(ctx, s.Cells[s.Near], s.address()); err != nil {
		return "", err
	}
	err := s.eventually(ctx, func(ctx context.Context) error {
		context, err := s.nearContext(ctx)
		if err == nil && !meta.IsStatusConditionTrue(context.Status.Conditions, v1alpha.NetworkContextHeld) {
			err = fmt.Errorf("the hub does not know of the address: %+v", context.Status.Conditions)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	if err := s.Hub.Delete(ctx, s.binding(loadBalancer, s.Near)); err != nil {
		return "", fmt.Errorf("delete binding %s: %w", loadBalancer, err)
	}
	var kept types.UID
	return kept, s.eventually(ctx, func(ctx context.Context) error {
		context, err := s.nearContext(ctx)
		if err != nil {
			return err
		}
		kept = context.UID
		declared := meta.FindStatusCondition(context.Status.Conditions, v1alpha.NetworkContextDeclared)
		if declared == nil || declared.Reason != v1alpha.ReasonAddressesHeld {
			return fmt.Errorf("the context is not kept for its addresses: %+v", declared)
		}
		return s.copiesAre(ctx, 1400, s.Near)
	})
}

func comeBack(ctx context.Context, s *Stage, kept types.UID) error {
	if err := create(ctx, s.Hub, s.binding(loadBalancer, s.Near)); err != nil {
		return err
	}
	return s.eventually(ctx, func(ctx context.Context) error {
		context, err := s.nearContext(ctx)
		if err != nil {
			return err
		}
		if context.UID != kept {
			return fmt.Errorf("the context is %s, not %s, which was there", context.UID, kept)
		}
		return errors.Join(s.answered(ctx, loadBalancer, v1alpha.ReasonNetworkContextReady),
			s.Cells[s.Near].Get(ctx, client.ObjectKeyFromObject(s.address()), s.address()), s.copiesAre(ctx, 1400, s.Near))
	})
}

// nearContext reads the one context of the namespace, which is that of Near.
func (s *Stage) nearContext(ctx context.Context) (*v1alpha.NetworkContext, error) {
	if err := s.contextsAre(ctx, s.Near); err != nil {
		return nil, err
	}
	var contexts v1alpha.NetworkContextList
	if err := s.Hub.List(ctx, &contexts, client.InNamespace(s.Namespace), client.Limit(1)); err != nil {
		return nil, fmt.Errorf("list the contexts: %w", err)
	}
	if len(contexts.Items) == 0 {
		return nil, errors.New("the context is gone")
	}
	return &contexts.Items[0], nil
}
