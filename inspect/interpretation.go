package inspect

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"syscall"
	"time"

	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"go.datum.net/network-presence/api/v1alpha"
	"go.datum.net/network-presence/interpreter"
)

// operations that the rules must serve for a report to come back.
var operations = []configv1alpha1.InterpreterOperation{
	configv1alpha1.InterpreterOperationInterpretStatus, configv1alpha1.InterpreterOperationInterpretHealth,
	configv1alpha1.InterpreterOperationAggregateStatus,
}

// webhook is the one that Karmada asks about NetworkContexts. Nil where there is none.
func (i *Installation) webhook() *configv1alpha1.ResourceInterpreterWebhook {
	for c := range i.Webhooks.Items {
		for w := range i.Webhooks.Items[c].Webhooks {
			webhook := &i.Webhooks.Items[c].Webhooks[w]
			for _, rule := range webhook.Rules {
				if slices.Contains(rule.Kinds, interpreter.Kind.Kind) && slices.Contains(rule.APIGroups, interpreter.Kind.Group) {
					return webhook
				}
			}
		}
	}
	return nil
}

// inLua are the operations for which Karmada asks a script and so no webhook.
func (i *Installation) inLua() []configv1alpha1.InterpreterOperation {
	var scripted []configv1alpha1.InterpreterOperation
	for n := range i.Customizations.Items {
		spec := &i.Customizations.Items[n].Spec
		if spec.Target.Kind != interpreter.Kind.Kind || spec.Target.APIVersion != v1alpha.SchemeGroupVersion.String() {
			continue
		}
		if spec.Customizations.StatusReflection != nil {
			scripted = append(scripted, configv1alpha1.InterpreterOperationInterpretStatus)
		}
		if spec.Customizations.HealthInterpretation != nil {
			scripted = append(scripted, configv1alpha1.InterpreterOperationInterpretHealth)
		}
		if spec.Customizations.StatusAggregation != nil {
			scripted = append(scripted, configv1alpha1.InterpreterOperationAggregateStatus)
		}
	}
	return scripted
}

func checkInterpreter(i *Installation) []Finding {
	const subject = "interpreter"
	for _, kind := range []string{"ResourceInterpreterWebhookConfiguration", "ResourceInterpreterCustomization"} {
		if i.Unseen[kind] != "" {
			return i.unseen(subject, kind)
		}
	}
	webhook, scripted := i.webhook(), i.inLua()
	switch {
	case webhook == nil && len(scripted) == 0:
		return []Finding{fault(subject, "install the chart network-presence-hub with interpreter.form webhook or lua",
			"neither a webhook nor scripts interpret NetworkContexts: Karmada calls every copy healthy")}
	case webhook != nil && len(scripted) > 0:
		return []Finding{fault(subject, "install one form and not both",
			"a webhook and scripts are installed, and Karmada asks the scripts alone for %v", scripted)}
	case webhook == nil && len(scripted) < len(operations):
		return []Finding{fault(subject, "install the chart network-presence-hub with interpreter.form lua", "the scripts serve %v alone", scripted)}
	case i.Answer != nil:
		return []Finding{fault(subject, "see that `network-presence webhook` runs, and that the certificate authority in the configuration is the one of its certificate",
			"the webhook does not answer: %v", i.Answer)}
	}
	if silent := i.uninterpreted(); len(silent) > 0 {
		return []Finding{fault(subject, "see the events of these contexts and the log of karmada-controller-manager",
			"%d contexts are applied and not reported on, such as %s", len(silent), silent[0])}
	}
	switch {
	case webhook == nil:
		return []Finding{fine(subject, "scripts in Lua")}
	case i.NotAsked:
		return []Finding{fine(subject, "webhook, which cannot be asked from here; every context is reported on")}
	}
	return []Finding{fine(subject, "webhook, which answers")}
}

// uninterpreted are the contexts with a cell that has had them for a while and of which
// Karmada knows nothing.
func (i *Installation) uninterpreted() []string {
	var silent []string
	for n := range i.Placements.Items {
		placement := &i.Placements.Items[n]
		applied := meta.FindStatusCondition(placement.Status.Conditions, workv1alpha2.FullyApplied)
		if placement.Spec.Resource.Kind != interpreter.Kind.Kind || applied == nil || applied.Status != metav1.ConditionTrue ||
			i.Now.Sub(applied.LastTransitionTime.Time) < idle {
			continue
		}
		for _, item := range placement.Status.AggregatedStatus {
			if item.Applied && item.Status == nil {
				silent = append(silent, placement.Namespace+"/"+placement.Spec.Resource.Name)
				break
			}
		}
	}
	return silent
}

// askWebhook asks the interpreter webhook about a copy that there is not.
func (i *Installation) askWebhook(ctx context.Context) {
	webhook := i.webhook()
	if webhook == nil {
		return
	}
	if webhook.ClientConfig.URL == nil {
		i.NotAsked = true
		return
	}
	roots, err := x509.SystemCertPool()
	if ca := webhook.ClientConfig.CABundle; len(ca) > 0 || err != nil {
		roots = x509.NewCertPool()
		roots.AppendCertsFromPEM(ca)
	}
	patience := 10 * time.Second
	if webhook.TimeoutSeconds != nil {
		patience = time.Duration(*webhook.TimeoutSeconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}
	i.Answer = ask(ctx, &http.Client{Transport: transport}, *webhook.ClientConfig.URL)
	var name *net.DNSError
	var dialled *net.OpError
	// A refused connection is an answer: the host is there, and nothing listens on it.
	far := errors.As(i.Answer, &dialled) && dialled.Op == "dial" && !errors.Is(i.Answer, syscall.ECONNREFUSED)
	if far || errors.As(i.Answer, &name) {
		i.NotAsked, i.Answer = true, nil
	}
}

// ask has the webhook judge the health of an empty copy. The error says what is wrong with
// the answer.
func ask(ctx context.Context, caller *http.Client, url string) error {
	raw, err := json.Marshal(&v1alpha.NetworkContext{ObjectMeta: metav1.ObjectMeta{Namespace: "check", Name: "check"}})
	if err != nil {
		return fmt.Errorf("write the question: %w", err)
	}
	question, err := json.Marshal(&configv1alpha1.ResourceInterpreterContext{
		TypeMeta: metav1.TypeMeta{APIVersion: configv1alpha1.GroupVersion.String(), Kind: "ResourceInterpreterContext"},
		Request: &configv1alpha1.ResourceInterpreterRequest{
			UID: "check", Kind: interpreter.Kind, Namespace: "check", Name: "check",
			Operation: configv1alpha1.InterpreterOperationInterpretHealth, Object: runtime.RawExtension{Raw: raw},
		},
	})
	if err != nil {
		return fmt.Errorf("write the question: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(question))
	if err != nil {
		return fmt.Errorf("make a request to %s: %w", url, err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := caller.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // it is only read
	var answer configv1alpha1.ResourceInterpreterContext
	if err := json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&answer); err != nil {
		return fmt.Errorf("read the answer of %s, status %s: %w", url, response.Status, err)
	}
	if answer.Response == nil || answer.Response.Healthy == nil {
		return fmt.Errorf("%s gave no answer about health, status %s", url, response.Status)
	}
	return nil
}
