package cell

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"

	"go.datum.net/network-presence/api/v1alpha"
)

// round is one network whose copy is deleted while an address on it is allocated.
type round struct {
	*world
	copy  *v1alpha.NetworkContext
	claim *v1alpha.NetworkInterfaceClaim
	nic   *v1alpha.NetworkInterface
	// allocated tells that the allocator was promised the network and made the interface.
	allocated bool
}

// allocate does what an allocator does: it reads the claim until it is promised, then makes
// the interface, late by up to half the grace. It gives up when the copy has gone.
func (r *round) allocate(late time.Duration) error {
	err := wait.PollUntilContextTimeout(r.ctx, 2*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		if err := r.read(r.claim); err != nil {
			return false, err
		}
		if meta.IsStatusConditionTrue(r.claim.Status.Conditions, v1alpha.NetworkInterfaceClaimNetworkAvailable) {
			r.allocated = true
			return true, nil
		}
		return r.gone(r.copy), nil
	})
	if err != nil || !r.allocated {
		return err
	}
	<-time.After(late)
	return cell.Create(r.ctx, r.nic)
}

// run races the deletion of the copy against the allocation.
func (r *round) run(deleted, late time.Duration) error {
	if err := cell.Create(r.ctx, r.copy); err != nil {
		return err
	}
	if err := cell.Create(r.ctx, r.claim); err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() {
		<-time.After(deleted)
		failed <- cell.Delete(r.ctx, r.copy)
	}()
	if err := r.allocate(late); err != nil {
		return fmt.Errorf("allocate: %w", err)
	}
	if err := <-failed; err != nil {
		return fmt.Errorf("delete the copy: %w", err)
	}
	return nil
}

// stranded tells whether there is an address without a held copy.
func (r *round) stranded() bool { return r.allocated && !r.held(r.copy) }

func (w *world) newRound(number int) *round {
	name := numbered("net", number)
	r := &round{world: w, claim: &v1alpha.NetworkInterfaceClaim{}, nic: &v1alpha.NetworkInterface{}}
	r.copy = &v1alpha.NetworkContext{ObjectMeta: w.meta(name + "-" + here)}
	r.copy.Spec.Network.Name, r.copy.Spec.Location.Name = v1alpha.Name(name), here
	r.copy.Spec.IPFamilies, r.copy.Spec.MTU = dual, 8000
	r.claim.ObjectMeta, r.claim.Spec.Network = w.meta(name), r.copy.Spec.Network
	r.nic.ObjectMeta, r.nic.Spec.Network = w.meta(name), r.copy.Spec.Network
	return r
}

// race runs rounds at most ten at a time and returns the rounds.
func (w *world) race(rounds int, deletedWithin time.Duration) []*round {
	w.Helper()
	seed := uint64(time.Now().UnixNano())
	w.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	within := func(limit time.Duration) time.Duration { return time.Duration(random.Int64N(int64(limit))) }

	all := make([]*round, rounds)
	free := make(chan struct{}, 10)
	failed := make(chan error, rounds)
	for i := range all {
		all[i] = w.newRound(i)
		deleted, late := within(deletedWithin), within(grace/2)
		free <- struct{}{}
		go func() {
			defer func() { <-free }()
			failed <- all[i].run(deleted, late)
		}()
	}
	for range all {
		w.Expect(<-failed).To(Succeed())
	}
	return all
}

// checkRounds checks what must be true at rest, and that nothing stays behind.
func (w *world) checkRounds(all []*round) {
	w.Helper()
	allocated := 0
	for _, round := range all {
		w.Expect(round.stranded()).To(BeFalse(), "%s: an address without a held context", round.copy.Name)
		if round.allocated {
			allocated++
		}
	}
	w.Logf("%d of %d rounds allocated an address", allocated, len(all))
	w.Expect(allocated).To(BeNumerically(">", 0), "no round tried the race")
	w.Expect(allocated).To(BeNumerically("<", len(all)), "no round tried the race")
	for _, round := range all {
		if round.allocated {
			w.delete(round.nic)
		}
		w.becomesGone(round.copy)
		w.refused(round.claim, v1alpha.ReasonNetworkNotAvailableInLocation)
	}
}

func TestNoAddressWithoutAHeldContextWhileTheHubDeletes(t *testing.T) {
	w := newWorld(t)
	startAgent(t)
	rounds := w.race(200, 600*time.Millisecond)
	// A promise that is withdrawn too early, or a copy let go too early, shows by now.
	<-time.After(2 * grace)
	w.checkRounds(rounds)
}

func TestNoAddressWithoutAHeldContextWhileTheAgentIsKilled(t *testing.T) {
	w := newWorld(t)
	// Some live long enough for a grace to pass, most do not.
	stop, stopped := make(chan struct{}), make(chan int)
	go func() {
		for kills := 0; ; kills++ {
			a := startAgent(t)
			select {
			case <-stop:
				stopped <- kills
				return
			case <-time.After(time.Duration(kills%8) * 300 * time.Millisecond):
				a.end(t, kill)
			}
		}
	}()
	rounds := w.race(100, 3*time.Second)
	close(stop)
	w.Logf("%d kills", <-stopped)
	<-time.After(2 * grace)
	w.checkRounds(rounds)
}

// An interface that was made without a claim holds from when the agent sees it.
func TestBurstsOfInterfacesLeaveNothingHeld(t *testing.T) {
	w := newWorld(t)
	startAgent(t)
	context := w.deliver(network)
	for i := range 100 {
		w.delete(w.attach(numbered("nic", i), network))
	}
	w.becomesFree(context)
	w.staysFree(context, 2*grace)
}
