package examples

import (
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/yaml"
)

// manifests are the objects of examples/kubernetes.
type manifests struct {
	deployment appsv1.Deployment
	service    corev1.Service
	configMap  corev1.ConfigMap
	secret     corev1.Secret
	budget     policyv1.PodDisruptionBudget
	policy     networkingv1.NetworkPolicy
}

// readManifests decodes the files into the types of the Kubernetes API. A field that does not exist, or
// has another type, is an error.
func readManifests(t *testing.T) *manifests {
	t.Helper()
	m := new(manifests)
	left := map[string]any{
		"apps/v1 Deployment": &m.deployment, "v1 Service": &m.service, "v1 ConfigMap": &m.configMap, "v1 Secret": &m.secret,
		"policy/v1 PodDisruptionBudget": &m.budget, "networking.k8s.io/v1 NetworkPolicy": &m.policy,
	}
	files, err := filepath.Glob("../../examples/kubernetes/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		documents := yaml.NewYAMLReader(newReader(text))
		for {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			var kind struct{ APIVersion, Kind string }
			if err := strict.Unmarshal(document, &kind); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			name := kind.APIVersion + " " + kind.Kind
			into, known := left[name]
			if !known {
				t.Fatalf("%s: a %s is not known, or there are two", file, name)
			}
			delete(left, name)
			if err := strict.UnmarshalStrict(document, into); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	if len(left) > 0 {
		t.Fatalf("missing: %v", slices.Collect(maps.Keys(left)))
	}
	return m
}

// TestKubernetes: the manifests are valid by the types of the Kubernetes API, and what they name exists.
func TestKubernetes(t *testing.T) {
	m := readManifests(t)
	pod := m.deployment.Spec.Template
	if *m.deployment.Spec.Replicas < 2 {
		t.Error("want at least two replicas")
	}
	for name, selector := range map[string]map[string]string{
		"deployment": m.deployment.Spec.Selector.MatchLabels, "service": m.service.Spec.Selector,
		"budget": m.budget.Spec.Selector.MatchLabels, "policy": m.policy.Spec.PodSelector.MatchLabels,
	} {
		if !maps.Equal(selector, pod.Labels) {
			t.Errorf("%s: selector %v, labels of pods %v", name, selector, pod.Labels)
		}
	}
	container := pod.Spec.Containers[0]
	if published := m.service.Spec.Ports; len(published) != 1 || published[0].TargetPort.StrVal != "http" {
		t.Errorf("the service publishes %v, want the port for clients alone", published)
	}
	for _, rule := range m.policy.Spec.Ingress {
		if len(rule.From) == 0 && (len(rule.Ports) != 1 || rule.Ports[0].Port.IntVal != 8080) {
			t.Errorf("the network policy lets everybody in at %v", rule.Ports)
		}
	}
	ports := make(map[string]int32)
	for _, port := range container.Ports {
		ports[port.Name] = port.ContainerPort
	}
	for name, port := range map[string]intstr.IntOrString{
		"service": m.service.Spec.Ports[0].TargetPort, "readiness": container.ReadinessProbe.HTTPGet.Port, "liveness": container.LivenessProbe.HTTPGet.Port,
	} {
		if ports[port.StrVal] == 0 {
			t.Errorf("%s: no port %s", name, port.String())
		}
	}
	for _, variable := range container.Env {
		ref := variable.ValueFrom.SecretKeyRef
		if _, exists := m.secret.StringData[ref.Key]; !exists || ref.Name != m.secret.Name {
			t.Errorf("%s: no %s in a secret %s", variable.Name, ref.Key, ref.Name)
		}
	}
	volumes := make(map[string]bool)
	for _, volume := range pod.Spec.Volumes {
		volumes[volume.Name] = true
		if volume.ConfigMap != nil && volume.ConfigMap.Name != m.configMap.Name {
			t.Errorf("volume %s: no config map %s", volume.Name, volume.ConfigMap.Name)
		}
	}
	for _, mount := range container.VolumeMounts {
		if !volumes[mount.Name] {
			t.Errorf("no volume %s", mount.Name)
		}
	}
	if *pod.Spec.SecurityContext.RunAsNonRoot != true || *container.SecurityContext.AllowPrivilegeEscalation || !*container.SecurityContext.ReadOnlyRootFilesystem {
		t.Error("the pod has rights that it does not need")
	}
}
