package check

import (
	"bytes"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	network "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

type object = map[string]any

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.LoadDir(filepath.Join("..", "helm"))
	require.NoError(t, err)
	require.NoError(t, c.Validate())
	return c
}

// render returns the manifests of the chart by kind and name, for the release "wakebell"
// in the namespace "timers" with values that override the defaults.
func render(t *testing.T, values string) map[string]string {
	t.Helper()
	found, err := tryRender(t, "wakebell", values)
	require.NoError(t, err)
	return found
}

func tryRender(t *testing.T, release, values string) (map[string]string, error) {
	t.Helper()
	c := loadChart(t)
	overrides, err := chartutil.ReadValues([]byte(values))
	require.NoError(t, err)
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = chartutil.KubeVersion{Version: "v1.30.0", Major: "1", Minor: "30"}
	require.False(t, chartutil.IsCompatibleRange(c.Metadata.KubeVersion, "v1.29.9"))
	require.True(t, chartutil.IsCompatibleRange(c.Metadata.KubeVersion, capabilities.KubeVersion.Version))
	options := chartutil.ReleaseOptions{Name: release, Namespace: "timers", Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(c, overrides, options, capabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Engine{Strict: true}.Render(c, all)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for name, text := range files {
		if path.Ext(name) != ".yaml" {
			continue
		}
		for _, part := range strings.Split("\n"+text, "\n---") {
			var o struct {
				Kind     string `json:"kind"`
				Metadata struct {
					Name string `json:"name"`
				} `json:"metadata"`
			}
			require.NoError(t, yaml.Unmarshal([]byte(part), &o), part)
			if o.Kind == "" { // nothing but comments
				continue
			}
			key := o.Kind + " " + o.Metadata.Name
			require.NotContains(t, found, key)
			found[key] = part
		}
	}
	return found, nil
}

// plain removes what only one of Helm and kustomize writes: labels of the release, the
// namespace, the hash of a configuration file, and a policy that is the default.
func plain(t *testing.T, text string) object {
	t.Helper()
	var o object
	require.NoError(t, yaml.Unmarshal([]byte(text), &o))
	only := []string{
		"app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by",
		"app.kubernetes.io/part-of", "helm.sh/chart", "checksum/config", "namespace", "imagePullPolicy",
	}
	var clean func(v any) any
	clean = func(v any) any {
		switch v := v.(type) {
		case object:
			for _, key := range only {
				delete(v, key)
			}
			for key, inner := range v {
				inner = clean(inner)
				if empty, is := inner.(object); is && len(empty) == 0 && (key == "labels" || key == "annotations") {
					delete(v, key)
					continue
				}
				v[key] = inner
			}
			return v
		case []any:
			for i := range v {
				v[i] = clean(v[i])
			}
			return v
		case string:
			if strings.HasPrefix(v, "wakebell-") && o["kind"] != "ConfigMap" {
				if name, _, _ := strings.Cut(v, "-"); len(v) == len("wakebell-")+10 { // the hash of a ConfigMap
					return name
				}
			}
		}
		return v
	}
	clean(o)
	metadata := o["metadata"].(object)
	delete(metadata, "labels") // those by which something is selected are in selectors and templates
	if o["kind"] == "ConfigMap" {
		metadata["name"] = "wakebell"
		var file object
		require.NoError(t, yaml.Unmarshal([]byte(o["data"].(object)["wakebell.yaml"].(string)), &file))
		o["data"] = object{"wakebell.yaml": file}
	}
	if o["kind"] == "Deployment" && metadata["name"] == "wakebell-node" {
		delete(o["spec"].(object), "replicas") // KEDA sets them
	}
	return o
}

// The chart with its defaults, and with all that can be switched on, is what the kustomize base and
// its components are.
func TestChartEqualsKustomizeBase(t *testing.T) {
	t.Parallel()
	ours := render(t, "{dash: {enabled: true}, monitoring: {enabled: true}, keda: {enabled: true}}")
	theirs := manifests(t)
	require.Equal(t, slices.Sorted(maps.Keys(theirs)), slices.Sorted(maps.Keys(ours)))
	for name := range theirs {
		require.Equal(t, plain(t, theirs[name]), plain(t, ours[name]), name)
	}
	// The labels that a component of monitoring selects are those of its service.
	var metrics core.Service
	require.NoError(t, yaml.Unmarshal([]byte(ours["Service wakebell-metrics"]), &metrics))
	var monitor monitoring.ServiceMonitor
	require.NoError(t, yaml.Unmarshal([]byte(ours["ServiceMonitor wakebell"]), &monitor))
	require.Subset(t, metrics.Labels, monitor.Spec.Selector.MatchLabels)
}

// Everything that the chart can make has only fields that Kubernetes knows, and each
// selector selects the pods of this release.
func TestChartIsValidWithAllValues(t *testing.T) {
	t.Parallel()
	found := render(t, `
image: {repository: registry.example.com/wakebell, tag: 0.2.0, pullSecrets: [registry]}
node: {config: {http: "0.0.0.0:8081"}, env: [{name: OTEL_EXPORTER_OTLP_ENDPOINT, value: "http://otel:4318"}]}
beat: {args: [--celery]}
dash: {enabled: true, writable: true, tls: dash-tls, args: [--hide-payloads]}
networkPolicy:
  redisPorts: [6379, 26379]
  ingress: [{from: [{podSelector: {}}], ports: [{port: 8080}]}]
  egress: [{ports: [{port: 443}]}]
podDisruptionBudget: {maxUnavailable: 25%}
monitoring: {enabled: true}
keda: {enabled: true, threshold: 50}
`)
	types := map[string]any{
		"ConfigMap wakebell": &core.ConfigMap{}, "Service wakebell": &core.Service{},
		"Deployment wakebell-node": &apps.Deployment{}, "Deployment wakebell-beat": &apps.Deployment{}, "Deployment wakebell-dash": &apps.Deployment{},
		"PodDisruptionBudget wakebell-node": &policy.PodDisruptionBudget{}, "PodDisruptionBudget wakebell-beat": &policy.PodDisruptionBudget{},
		"NetworkPolicy wakebell": &network.NetworkPolicy{}, "Service wakebell-metrics": &core.Service{}, "Service wakebell-dash": &core.Service{},
		"ServiceMonitor wakebell": &monitoring.ServiceMonitor{}, "ScaledObject wakebell-node": &scaledObject{},
	}
	require.Equal(t, slices.Sorted(maps.Keys(types)), slices.Sorted(maps.Keys(found)))
	for name, text := range found {
		require.NoError(t, yaml.UnmarshalStrict([]byte(text), types[name]), text)
	}
	for _, name := range []string{"node", "beat", "dash"} {
		d := types["Deployment wakebell-"+name].(*apps.Deployment)
		pods := d.Spec.Template.Spec
		require.Equal(t, d.Spec.Selector.MatchLabels, d.Spec.Template.Labels)
		require.Equal(t, "wakebell", d.Spec.Template.Labels["app.kubernetes.io/instance"])
		require.Equal(t, "registry.example.com/wakebell:0.2.0", pods.Containers[0].Image)
		require.Equal(t, []core.LocalObjectReference{{Name: "registry"}}, pods.ImagePullSecrets)
	}
	dash := types["Deployment wakebell-dash"].(*apps.Deployment)
	require.Subset(t, dash.Spec.Template.Spec.Containers[0].Args, []string{"--writable", "--hide-payloads", "--http-cert=/etc/wakebell/tls/tls.crt"})
	require.NotContains(t, dash.Spec.Template.Spec.Containers[0].Args, "--insecure-listen")
	service := types["Service wakebell-dash"].(*core.Service)
	require.Equal(t, dash.Spec.Template.Labels, service.Spec.Selector)
	require.EqualValues(t, 443, service.Spec.Ports[0].Port)
	require.Contains(t, types["Deployment wakebell-beat"].(*apps.Deployment).Spec.Template.Spec.Containers[0].Args, "--celery")

	node := types["Deployment wakebell-node"].(*apps.Deployment).Spec.Template.Spec.Containers[0]
	require.Contains(t, node.Ports, core.ContainerPort{Name: "http", ContainerPort: 8081})
	nodes := types["Service wakebell"].(*core.Service)
	require.Equal(t, "http", nodes.Spec.Ports[1].TargetPort.String())
	require.EqualValues(t, 8081, nodes.Spec.Ports[1].Port)

	// The policy lets in what the pods serve, and nothing else of this chart.
	allowed := types["NetworkPolicy wakebell"].(*network.NetworkPolicy)
	var in, out []int32
	for _, rule := range allowed.Spec.Ingress {
		for _, port := range rule.Ports {
			in = append(in, port.Port.IntVal)
		}
	}
	for _, rule := range allowed.Spec.Egress {
		for _, port := range rule.Ports {
			out = append(out, port.Port.IntVal)
		}
	}
	require.ElementsMatch(t, []int32{7070, 8081, 9090, 8686, 8080}, in)
	require.ElementsMatch(t, []int32{53, 53, 6379, 26379, 4317, 4318, 443}, out)
}

// What is switched off is not there, and without KEDA the number of nodes is that of the
// values.
func TestChartLeavesOutWhatIsOff(t *testing.T) {
	t.Parallel()
	found := render(t, "{node: {replicas: 3}, beat: {enabled: false}, networkPolicy: {enabled: false}, dash: {enabled: true, tls: ''}}")
	require.Equal(t, []string{
		"ConfigMap wakebell", "Deployment wakebell-dash", "Deployment wakebell-node",
		"PodDisruptionBudget wakebell-node", "Service wakebell", "Service wakebell-dash",
	}, slices.Sorted(maps.Keys(found)))
	var node, dash apps.Deployment
	require.NoError(t, yaml.Unmarshal([]byte(found["Deployment wakebell-node"]), &node))
	require.EqualValues(t, 3, *node.Spec.Replicas)
	require.NoError(t, yaml.Unmarshal([]byte(found["Deployment wakebell-dash"]), &dash))
	require.Contains(t, dash.Spec.Template.Spec.Containers[0].Args, "--insecure-listen", "an ingress ends TLS")
	require.NotContains(t, dash.Spec.Template.Spec.Containers[0].Args, "--writable")
	require.Len(t, dash.Spec.Template.Spec.Volumes, 1, "no certificate")
	var service core.Service
	require.NoError(t, yaml.Unmarshal([]byte(found["Service wakebell-dash"]), &service))
	require.EqualValues(t, 80, service.Spec.Ports[0].Port)
	require.NotContains(t, render(t, "")["NetworkPolicy wakebell"], "port: 8686")
}

// Two releases in a namespace share no name, and a changed configuration replaces the pods.
func TestReleasesOfChartAreApart(t *testing.T) {
	t.Parallel()
	first := render(t, "")
	second, err := tryRender(t, "billing", "{node: {config: {max-concurrent: 50}}}")
	require.NoError(t, err)
	for name := range second {
		require.NotContains(t, first, name)
	}
	var a, b apps.Deployment
	require.NoError(t, yaml.Unmarshal([]byte(first["Deployment wakebell-node"]), &a))
	require.NoError(t, yaml.Unmarshal([]byte(second["Deployment billing-node"]), &b))
	require.NotEqual(t, a.Spec.Selector, b.Spec.Selector)
	require.NotEqual(t, a.Spec.Template.Annotations["checksum/config"], b.Spec.Template.Annotations["checksum/config"])
	require.Equal(t, "billing", b.Spec.Template.Spec.Volumes[0].ConfigMap.Name)
}

// The configuration file of the chart is one that a node takes, and the schema of the
// values refuses what the chart does not know.
func TestSchemasOfChart(t *testing.T) {
	t.Parallel()
	var config core.ConfigMap
	require.NoError(t, yaml.Unmarshal([]byte(render(t, "")["ConfigMap wakebell"]), &config))
	asJSON, err := yaml.YAMLToJSON([]byte(config.Data["wakebell.yaml"]))
	require.NoError(t, err)
	file, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	require.NoError(t, err)
	schema, err := jsonschema.NewCompiler().Compile("../../docs/public/wakebell.schema.json")
	require.NoError(t, err)
	require.NoError(t, schema.Validate(file))

	for _, values := range []string{
		"replicas: 2", "node: {replica: 2}", "node: {replicas: many}", "beat: {args: [celery]}", "dash: {users: ''}",
		"networkPolicy: {redisPorts: []}", "networkPolicy: {redisPorts: [70000]}", "keda: {threshold: 0}",
		"keda: {prometheus: 'prometheus:9090'}", "image: {pullPolicy: Sometimes}", "podDisruptionBudget: {maxUnavailable: 0}",
		"monitoring: {interval: 15}", "redis: {secret: ''}", "node: {terminationGracePeriodSeconds: 5}",
	} {
		_, err := tryRender(t, "wakebell", values)
		require.ErrorContains(t, err, "values don't meet the specifications of the schema", values)
	}
}
