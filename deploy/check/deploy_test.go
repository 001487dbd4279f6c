package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	network "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// scaledObject has the fields of KEDA's ScaledObject that are used; its module imports
// the whole operator.
type scaledObject struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]any    `json:"metadata"`
	Spec       scaledObjectSpec  `json:"spec"`
	Status     map[string]string `json:"status"`
}

type scaledObjectSpec struct {
	ScaleTargetRef struct {
		Name string `json:"name"`
	} `json:"scaleTargetRef"`
	MinReplicaCount int32 `json:"minReplicaCount"`
	MaxReplicaCount int32 `json:"maxReplicaCount"`
	CooldownPeriod  int32 `json:"cooldownPeriod"`
	Triggers        []struct {
		Type     string            `json:"type"`
		Metadata map[string]string `json:"metadata"`
	} `json:"triggers"`
}

// manifests builds base and both components, and returns the manifests by kind and name.
func manifests(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("..", "kubernetes"))))
	overlay := filepath.Join(dir, "overlay")
	require.NoError(t, os.Mkdir(overlay, 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(overlay, "kustomization.yaml"),
		[]byte("resources: [../base]\ncomponents: [../monitoring, ../keda]\nnamespace: timers\n"), 0o600))
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), overlay)
	require.NoError(t, err)
	all := map[string]string{}
	for _, r := range built.Resources() {
		text, err := r.AsYAML()
		require.NoError(t, err)
		name := r.GetName()
		if r.GetKind() == "ConfigMap" { // its name has a hash of its content
			name, _, _ = strings.Cut(name, "-")
		}
		all[r.GetKind()+" "+name] = string(text)
	}
	return all
}

func TestManifestsAreValid(t *testing.T) {
	t.Parallel()
	types := map[string]any{
		"ConfigMap wakebell": &core.ConfigMap{}, "Service wakebell": &core.Service{},
		"Deployment wakebell-node": &apps.Deployment{}, "Deployment wakebell-beat": &apps.Deployment{},
		"Deployment wakebell-dash": &apps.Deployment{}, "Service wakebell-dash": &core.Service{},
		"PodDisruptionBudget wakebell-node": &policy.PodDisruptionBudget{}, "PodDisruptionBudget wakebell-beat": &policy.PodDisruptionBudget{},
		"NetworkPolicy wakebell": &network.NetworkPolicy{}, "Service wakebell-metrics": &core.Service{}, "ServiceMonitor wakebell": &monitoring.ServiceMonitor{},
		"ScaledObject wakebell-node": &scaledObject{},
	}
	found := manifests(t)
	for name, text := range found {
		require.Contains(t, types, name)
		require.NoError(t, yaml.UnmarshalStrict([]byte(text), types[name]), text)
	}
	require.Len(t, found, len(types))

	for name, ready := range map[string]string{"Deployment wakebell-node": "/readyz", "Deployment wakebell-beat": "/readyz", "Deployment wakebell-dash": "/livez"} {
		pods := types[name].(*apps.Deployment).Spec.Template.Spec
		require.True(t, *pods.SecurityContext.RunAsNonRoot)
		require.False(t, *pods.AutomountServiceAccountToken)
		require.True(t, *pods.Containers[0].SecurityContext.ReadOnlyRootFilesystem)
		require.Contains(t, pods.Containers[0].Image, "ghcr.io/wakebell/wakebell:")
		require.Equal(t, "/livez", pods.Containers[0].LivenessProbe.HTTPGet.Path)
		require.Equal(t, ready, pods.Containers[0].ReadinessProbe.HTTPGet.Path)
	}
	served := types["Service wakebell-dash"].(*core.Service)
	require.Equal(t, types["Deployment wakebell-dash"].(*apps.Deployment).Spec.Template.Labels, served.Spec.Selector)
	require.Contains(t, found["NetworkPolicy wakebell"], "port: 8686")
	node := types["Deployment wakebell-node"].(*apps.Deployment).Spec.Template.Spec
	mounted := node.Volumes[0].ConfigMap.Name
	require.Equal(t, types["ConfigMap wakebell"].(*core.ConfigMap).Name, mounted, "the pods use the generated name")
	require.Equal(t, "wakebell-node", types["ScaledObject wakebell-node"].(*scaledObject).Spec.ScaleTargetRef.Name)
	open := map[int32]bool{}
	answers := false // actors among the clients
	for _, rule := range types["NetworkPolicy wakebell"].(*network.NetworkPolicy).Spec.Egress {
		for _, port := range rule.Ports {
			open[port.Port.IntVal] = true
		}
		answers = answers || len(rule.To) == 1 && rule.To[0].PodSelector.MatchLabels["wakebell-client"] == "true"
	}
	require.Equal(t, map[int32]bool{53: true, 6379: true, 4317: true, 4318: true}, open)
	require.True(t, answers)
	metrics := types["Service wakebell-metrics"].(*core.Service)
	monitor := types["ServiceMonitor wakebell"].(*monitoring.ServiceMonitor)
	require.Subset(t, metrics.Labels, monitor.Spec.Selector.MatchLabels)
	require.Equal(t, metrics.Spec.Ports[0].Name, monitor.Spec.Endpoints[0].Port)
}

func TestComposeFileIsValid(t *testing.T) {
	t.Parallel()
	options, err := cli.NewProjectOptions([]string{filepath.Join("..", "compose", "compose.yaml")},
		cli.WithEnv([]string{"WAKEBELL_PASSWORD=secret"}), cli.WithInterpolation(true), cli.WithResolvedPaths(true))
	require.NoError(t, err)
	project, err := options.LoadProject(t.Context())
	require.NoError(t, err)
	require.Len(t, project.Services, 6)
	for name, service := range project.Services {
		for _, volume := range service.Volumes {
			if volume.Type == "bind" {
				require.FileExists(t, strings.TrimSuffix(volume.Source, "/grafana")+map[bool]string{true: "/grafana/overview.json"}[strings.HasSuffix(volume.Source, "/grafana")], name)
			}
		}
		if service.Build != nil {
			require.FileExists(t, filepath.Join(service.Build.Context, service.Build.Dockerfile))
		}
	}
	require.Equal(t, 2, *project.Services["node"].Deploy.Replicas)
}
