package cell

import (
	"testing"

	"go.datum.net/network-presence/api/v1alpha"
)

func TestWishedMTU(t *testing.T) {
	mtu := func(mtu int32, changes ...func(*v1alpha.NetworkContext)) v1alpha.NetworkContext {
		return aContext("c", append(changes, func(context *v1alpha.NetworkContext) { context.Spec.MTU = mtu })...)
	}
	for name, test := range map[string]struct {
		contexts []v1alpha.NetworkContext
		want     int32
		differs  bool
	}{
		"no context":                   {nil, 1460, false},
		"the same":                     {[]v1alpha.NetworkContext{mtu(1460)}, 1460, false},
		"another":                      {[]v1alpha.NetworkContext{mtu(8000)}, 8000, true},
		"dropped by an old CRD":        {[]v1alpha.NetworkContext{mtu(0)}, 1460, false},
		"another location's":           {[]v1alpha.NetworkContext{mtu(8000, elsewhere)}, 1460, false},
		"of a context that is leaving": {[]v1alpha.NetworkContext{mtu(8000, deleted)}, 8000, true},
		"of the one that stays":        {[]v1alpha.NetworkContext{mtu(1400, deleted), mtu(8000), mtu(1300, elsewhere)}, 8000, true},
	} {
		t.Run(name, func(t *testing.T) {
			found := anInterface("i", 1460)
			got, differs := wishedMTU(&found, serving(test.contexts, here))
			if got != test.want || differs != test.differs {
				t.Errorf("wishedMTU() = %d, %v, want %d, %v", got, differs, test.want, test.differs)
			}
		})
	}
}
