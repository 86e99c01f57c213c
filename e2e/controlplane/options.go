package controlplane

import (
	"errors"
	"fmt"
	"strings"
	"time"

	clustervalidation "github.com/karmada-io/karmada/pkg/apis/cluster/validation"
	"k8s.io/apimachinery/pkg/util/validation"

	"go.datum.net/network-presence/cell"
)

// defaultCellDown is Options.CellDown where that is 0. Karmada's own 30 s are made for
// networks.
const defaultCellDown = 4 * time.Second

// validate says which options are wrong, and what is right; nil where none is.
func (o Options) validate() error {
	var faults []error
	if o.Dir == "" {
		faults = append(faults, errors.New("the state has no folder: name one (Dir)"))
	}
	faults = append(faults, validateInterpreter(o.Interpreter))
	if o.CellDown < 0 || o.CellDown%time.Second != 0 {
		faults = append(faults, fmt.Errorf("cell down %s is not a number of whole seconds", o.CellDown))
	}
	cells := map[string]bool{}
	for _, cell := range o.Cells {
		faults = append(faults, cell.validate())
		if cells[cell.Name] {
			faults = append(faults, fmt.Errorf("cell %q is named twice: give each a name of its own", cell.Name))
		}
		cells[cell.Name] = true
	}
	projects := map[string]bool{}
	for _, project := range o.Projects {
		faults = append(faults, validateProject(project))
		if projects[project] {
			faults = append(faults, fmt.Errorf("project %q is named twice: give each a name of its own", project))
		}
		projects[project] = true
	}
	return errors.Join(faults...)
}

func (c Cell) validate() error {
	if wrong := clustervalidation.ValidateClusterName(c.Name); len(wrong) > 0 {
		return fmt.Errorf("cell %q cannot be the name of a Karmada Cluster: %s", c.Name, strings.Join(wrong, "; "))
	}
	if c.Location == "" {
		if c.Agent {
			return fmt.Errorf("cell %s has an agent and no location: give it one, or no agent", c.Name)
		}
		return nil
	}
	if err := cell.ValidateLocation(c.Location); err != nil {
		return fmt.Errorf("cell %s: %w", c.Name, err)
	}
	return nil
}

// validateProject holds a project's name to what the Secret that connects it may be called.
func validateProject(name string) error {
	if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
		return fmt.Errorf("project %q cannot be the name of one here: %s", name, strings.Join(wrong, "; "))
	}
	return nil
}

// cellDown is Options.CellDown or its default.
func (o Options) cellDown() time.Duration {
	if o.CellDown == 0 {
		return defaultCellDown
	}
	return o.CellDown
}
