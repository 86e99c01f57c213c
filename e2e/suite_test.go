// Package e2e proves on a real Karmada what network presence promises.
package e2e

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"go.datum.net/network-presence/e2e/controlplane"
)

const (
	firstProject = "acme"
	otherProject = "globex"

	near = "us-central-1"
	far  = "eu-west-1"
	// pulled is the location of a pull-mode cell.
	pulled = "sa-east-1"
	// spareCell serves no location until a spec labels it.
	spareCell = "spare"
)

// cells of the suite, by name. That of the pulled location has no agent.
var cells = []controlplane.Cell{
	{Name: "us-1", Location: near, Agent: true},
	{Name: "eu-1", Location: far, Agent: true},
	{Name: "sa-1", Location: pulled, Pull: true},
	{Name: spareCell},
}

var (
	// plane is the one control plane of the suite.
	plane *controlplane.ControlPlane
	// interpreterForm is the form of the rules that the suite runs with: webhook, also when
	// empty, or lua.
	interpreterForm = os.Getenv("INTERPRETER")
	// state is the folder that has the folder of its state.
	state string
)

func TestE2E(t *testing.T) {
	log.SetLogger(klog.NewKlogr())
	RegisterFailHandler(Fail)
	RunSpecs(t, "network presence on Karmada")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	state, err = os.MkdirTemp("", "network-presence-e2e-")
	Expect(err).NotTo(HaveOccurred())
	plane, err = controlplane.Start(ctx, controlplane.Options{
		Dir: filepath.Join(state, "state"), Cells: cells, Projects: []string{firstProject, otherProject}, Progress: GinkgoWriter,
		Interpreter: interpreterForm,
	})
	DeferCleanup(func(ctx SpecContext) {
		if plane != nil {
			Expect(plane.Stop(ctx)).To(Succeed())
		}
		Expect(os.RemoveAll(state)).To(Succeed())
	})
	Expect(err).NotTo(HaveOccurred())
})

// A process that died by itself fails the spec during which it did, whatever else was seen.
var _ = AfterEach(func() { Expect(plane.Dead()).To(Succeed()) })

func hub() client.Client { return plane.Hub().Client }

func upstream(project string) client.Client { return plane.Project(project).Client }

func inCell(name string) client.Client { return plane.Cell(name).Client }

func allCells() []string {
	names := make([]string, 0, len(cells))
	for _, cell := range cells {
		names = append(names, cell.Name)
	}
	return names
}

// cellOf is the one cell that serves a location from the start.
func cellOf(location string) string {
	for _, cell := range cells {
		if cell.Location == location {
			return cell.Name
		}
	}
	Fail("no cell serves " + location)
	return ""
}

func pause(process string) {
	GinkgoHelper()
	Expect(plane.Pause(process)).To(Succeed())
}

func resume(process string) {
	GinkgoHelper()
	Expect(plane.Resume(process)).To(Succeed())
}

func stop(ctx SpecContext, process string) {
	GinkgoHelper()
	Expect(plane.Kill(ctx, process)).To(Succeed())
}

func restart(ctx SpecContext, process string) {
	GinkgoHelper()
	Expect(plane.Restart(ctx, process)).To(Succeed())
}
