{{/* Labels of a component, by which it is selected: (list $ "node"). */}}
{{- define "wakebell.selector" -}}
app.kubernetes.io/name: wakebell
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* All labels of an object: (list $ "node"). */}}
{{- define "wakebell.labels" -}}
{{- $root := index . 0 -}}
{{ include "wakebell.selector" . }}
app.kubernetes.io/part-of: wakebell
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version }}
{{- end }}

{{/* What all pods have. */}}
{{- define "wakebell.pod" -}}
automountServiceAccountToken: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - {name: {{ . | quote }}}
  {{- end }}
{{- end }}
{{- end }}

{{/* What all containers have. */}}
{{- define "wakebell.container" -}}
image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
# A process that cannot reach Redis is live.
livenessProbe: {httpGet: {path: /livez, port: health}, periodSeconds: 10, timeoutSeconds: 6, failureThreshold: 6}
{{- end }}

{{/* The ports that all containers have. */}}
{{- define "wakebell.ports" -}}
- {name: health, containerPort: 8080}
- {name: metrics, containerPort: 9090}
{{- end }}

{{/* The flags of beats and the dashboard. Nodes have them in their configuration file. */}}
{{- define "wakebell.flags" -}}
- --health=0.0.0.0:8080
- --metrics=0.0.0.0:9090
- --log-format=json
{{- end }}

{{/* The user of all pods. */}}
{{- define "wakebell.user" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* The variable with the URL of Redis. */}}
{{- define "wakebell.redis" -}}
- name: WAKEBELL_REDIS
  valueFrom: {secretKeyRef: {name: {{ .Values.redis.secret | quote }}, key: {{ .Values.redis.key | quote }}}}
{{- end }}
