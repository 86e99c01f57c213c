package interpreter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"
	karmada "github.com/karmada-io/karmada/pkg/webhook/interpreter"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"go.datum.net/network-presence/api/v1alpha"
)

// Kind is the one kind that is interpreted.
var Kind = metav1.GroupVersionKind{
	Group:   v1alpha.SchemeGroupVersion.Group,
	Version: v1alpha.SchemeGroupVersion.Version,
	Kind:    "NetworkContext",
}

// Path is where the webhook serves a Handler.
const Path = "/interpret"

// Operations are those that Handler serves. Retain and InterpretDependency are not among
// them: a cell's agent of Karmada asks for those as well, and their scripts are installed
// whichever form of the others is.
var Operations = []configv1alpha1.InterpreterOperation{
	configv1alpha1.InterpreterOperationInterpretStatus,
	configv1alpha1.InterpreterOperationInterpretHealth,
	configv1alpha1.InterpreterOperationAggregateStatus,
}

// Handler answers Karmada's requests about NetworkContexts. Bad requests get an answer that
// says what is wrong with them.
type Handler struct {
	// Now is the clock that conditions take their time of transition from.
	Now func() time.Time
}

var _ karmada.Handler = &Handler{}

// InjectDecoder is asked of a handler by Karmada's server, whose decoder is for whole typed
// objects: one bad value would hide all others.
func (*Handler) InjectDecoder(*karmada.Decoder) {}

// Handle answers one request.
func (h *Handler) Handle(_ context.Context, request karmada.Request) karmada.Response {
	if request.Kind != Kind {
		return refused(fmt.Errorf("kind %s/%s %s is not interpreted here: want %s/%s %s",
			request.Kind.Group, request.Kind.Version, request.Kind.Kind, Kind.Group, Kind.Version, Kind.Kind))
	}
	if len(request.Object.Raw) == 0 {
		return refused(errors.New("the request has no object"))
	}
	switch request.Operation {
	case configv1alpha1.InterpreterOperationInterpretStatus:
		return h.interpretStatus(request)
	case configv1alpha1.InterpreterOperationInterpretHealth:
		return h.interpretHealth(request)
	case configv1alpha1.InterpreterOperationAggregateStatus:
		return h.aggregateStatus(request)
	}
	return refused(fmt.Errorf("operation %q is not served: want one of %v", request.Operation, Operations))
}

func (h *Handler) interpretStatus(request karmada.Request) karmada.Response {
	report, err := reflectRaw(request.Object.Raw)
	if err != nil {
		return refused(err)
	}
	raw, err := json.Marshal(report)
	if err != nil {
		return failed(fmt.Errorf("write the report: %w", err))
	}
	response := karmada.Succeeded("")
	response.RawStatus = &runtime.RawExtension{Raw: raw}
	return response
}

func (h *Handler) interpretHealth(request karmada.Request) karmada.Response {
	report, err := reflectRaw(request.Object.Raw)
	if err != nil {
		return refused(err)
	}
	healthy := Health(report)
	response := karmada.Succeeded("")
	response.Healthy = &healthy
	return response
}

// reflectRaw reports on a copy as it comes. The error is that of what is no object at all.
func reflectRaw(raw []byte) (Report, error) {
	copied, err := ReadCopy(raw)
	if copied == nil {
		return Report{}, err
	}
	return Reflect(copied, err), nil
}

func (h *Handler) aggregateStatus(request karmada.Request) karmada.Response {
	var context v1alpha.NetworkContext
	if err := utiljson.Unmarshal(request.Object.Raw, &context); err != nil {
		return refused(fmt.Errorf("read the context: %w", err))
	}
	status := Aggregate(&context, request.AggregatedStatus, h.Now())
	if apiequality.Semantic.DeepEqual(status, context.Status) {
		return karmada.Succeeded("")
	}
	return withStatus(status)
}

// withStatus answers with the patch that replaces an object's status.
func withStatus(status v1alpha.NetworkContextStatus) karmada.Response {
	patch, err := json.Marshal([]struct {
		Operation string                       `json:"op"`
		Path      string                       `json:"path"`
		Value     v1alpha.NetworkContextStatus `json:"value"`
	}{{"add", "/status", status}})
	if err != nil {
		return failed(fmt.Errorf("write the status: %w", err))
	}
	patchType := configv1alpha1.PatchTypeJSONPatch
	response := karmada.Succeeded("")
	response.Patch, response.PatchType = patch, &patchType
	return response
}

func refused(err error) karmada.Response {
	return karmada.Errored(http.StatusBadRequest, err)
}

func failed(err error) karmada.Response {
	return karmada.Errored(http.StatusInternalServerError, err)
}
