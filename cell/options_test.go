package cell

import (
	"strings"
	"testing"
)

func TestOptionsValidate(t *testing.T) {
	if err := DefaultOptions().Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	for name, test := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"location in capitals": {func(o *Options) { o.Location = "US" }, `location "US" is not the name of one: a lowercase RFC 1123 subdomain`},
		"location too long":    {func(o *Options) { o.Location = strings.Repeat("a", 64) }, "must be no more than 63 characters"},
		"negative grace":       {func(o *Options) { o.AllocationGrace = -1 }, "allocation grace -1ns is negative: it is a time of zero or more"},
		"no worker":            {func(o *Options) { o.Workers = 0 }, "workers is 0: at least 1 is needed"},
	} {
		t.Run(name, func(t *testing.T) {
			options := DefaultOptions()
			test.change(&options)
			if err := options.Validate(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Validate() = %v, want it to say %q", err, test.want)
			}
		})
	}
}
