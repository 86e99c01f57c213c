package webhook

import (
	"context"
	"net/http"
	"slices"
	"time"

	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"
	karmada "github.com/karmada-io/karmada/pkg/webhook/interpreter"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "network_presence_interpreter_requests_total",
		Help: "Requests to the interpreter, by operation.",
	}, []string{"operation"})
	failures = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "network_presence_interpreter_errors_total",
		Help: "Requests to the interpreter that got no answer but an error, by operation.",
	}, []string{"operation"})
	durations = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "network_presence_interpreter_request_duration_seconds",
		Help:    "Time from the head of a request to the interpreter to the end of its answer, by operation.",
		Buckets: prometheus.ExponentialBuckets(0.00025, 2, 14), // up to 2 s
	}, []string{"operation"})
)

func init() { metrics.Registry.MustRegister(requests, failures, durations) }

// unreadable stands for the operation of a request that was not understood.
const unreadable = "unreadable"

// call is what becomes of one request.
type call struct {
	operation  string
	successful bool
}

type callKey struct{}

// measured serves requests and counts them, those that never reach a handler too.
func measured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		c := &call{operation: unreadable}
		// A handler that panics, which net/http survives, counts as failed.
		defer func() { c.count(time.Since(began)) }()
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callKey{}, c)))
	})
}

func (c *call) count(took time.Duration) {
	requests.WithLabelValues(c.operation).Inc()
	durations.WithLabelValues(c.operation).Observe(took.Seconds())
	if !c.successful {
		failures.WithLabelValues(c.operation).Inc()
	}
}

// telling tells measured what a handler was asked and whether it had an answer.
type telling struct {
	karmada.Handler
	operations []configv1alpha1.InterpreterOperation
}

// InjectDecoder passes on what Karmada's server gives to its handlers.
func (t telling) InjectDecoder(decoder *karmada.Decoder) {
	karmada.InjectDecoderInto(decoder, t.Handler)
}

// Handle answers a request.
func (t telling) Handle(ctx context.Context, request karmada.Request) karmada.Response {
	c, watched := ctx.Value(callKey{}).(*call)
	if watched && slices.Contains(t.operations, request.Operation) {
		c.operation = string(request.Operation) // others would be labels without end
	}
	response := t.Handler.Handle(ctx, request)
	if watched {
		c.successful = response.Successful
	}
	return response
}
