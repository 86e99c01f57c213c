{{- /* One process as a Deployment with what belongs to it. Called with a dict of
root (the chart's own scope), name, args (a list), values (of this process), ports (name to
number), probes (a port's name, and scheme) and volumes (name to a dict of mountPath and source).
The charts network-presence and network-presence-cell have the same file. */ -}}
{{- define "process.selector" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}

{{- define "process.labels" -}}
{{ include "process.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: network-presence
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- with .root.Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "process.image" -}}
{{- $image := merge (dict) (default dict .values.image) .root.Values.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ default .root.Chart.AppVersion $image.tag }}
{{- end -}}
{{- end }}

{{- define "process" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "process.labels" . | nindent 4 }}
spec:
  replicas: {{ .values.replicas }}
  selector:
    matchLabels:
      {{- include "process.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "process.labels" . | nindent 8 }}
        {{- with .values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with .values.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      {{- with .root.Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      serviceAccountName: {{ .name }}
      automountServiceAccountToken: {{ default false .token }}
      {{- with default .root.Values.priorityClassName .values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      terminationGracePeriodSeconds: 40
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: {{ .name }}
          image: {{ include "process.image" . }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          args:
            {{- range concat .args .values.extraArgs }}
            - {{ . | quote }}
            {{- end }}
          {{- with .values.extraEnv }}
          env:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: [ALL]
          ports:
            {{- range $name, $port := .ports }}
            - name: {{ $name }}
              containerPort: {{ $port }}
            {{- end }}
          livenessProbe:
            httpGet:
              path: /healthz
              port: {{ .probes.port }}
            initialDelaySeconds: 10
            periodSeconds: 10
            failureThreshold: 3
          readinessProbe:
            httpGet:
              path: {{ .probes.ready }}
              port: {{ .probes.port }}
            periodSeconds: 5
          resources:
            {{- toYaml .values.resources | nindent 12 }}
          {{- with .volumes }}
          volumeMounts:
            {{- range $name, $volume := . }}
            - name: {{ $name }}
              mountPath: {{ $volume.mountPath }}
              readOnly: true
            {{- end }}
          {{- end }}
      {{- with .volumes }}
      volumes:
        {{- range $name, $volume := . }}
        - name: {{ $name }}
          {{- toYaml $volume.source | nindent 10 }}
        {{- end }}
      {{- end }}
      {{- with default .root.Values.nodeSelector .values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with default .root.Values.tolerations .values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      affinity:
        {{- if default .root.Values.affinity .values.affinity }}
        {{- toYaml (default .root.Values.affinity .values.affinity) | nindent 8 }}
        {{- else }}
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
            - weight: 100
              podAffinityTerm:
                topologyKey: kubernetes.io/hostname
                labelSelector:
                  matchLabels:
                    {{- include "process.selector" . | nindent 20 }}
        {{- end }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "process.labels" . | nindent 4 }}
automountServiceAccountToken: false
---
apiVersion: v1
kind: Service
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "process.labels" . | nindent 4 }}
spec:
  selector:
    {{- include "process.selector" . | nindent 4 }}
  ports:
    {{- range $name, $port := .ports }}
    - name: {{ $name }}
      port: {{ if eq $name "https" }}443{{ else }}{{ $port }}{{ end }}
      targetPort: {{ $name }}
    {{- end }}
{{- if .root.Values.podDisruptionBudget.create }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "process.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      {{- include "process.selector" . | nindent 6 }}
{{- end }}
{{- if .root.Values.networkPolicy.create }}
---
# Who may call the process: anyone for what it serves over HTTPS, the namespaces that are
# named for metrics, and the node for probes, which no policy keeps out.
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "process.labels" . | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      {{- include "process.selector" . | nindent 6 }}
  policyTypes: [Ingress]
  ingress:
    {{- if hasKey .ports "https" }}
    - ports:
        - port: https
    {{- end }}
    - ports:
        - port: metrics
      from:
        {{- range .root.Values.networkPolicy.metricsFrom }}
        - namespaceSelector:
            matchLabels:
              kubernetes.io/metadata.name: {{ . }}
        {{- else }}
        - namespaceSelector: {}
        {{- end }}
{{- end }}
{{- if .root.Values.serviceMonitor.create }}
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "process.labels" . | nindent 4 }}
    {{- with .root.Values.serviceMonitor.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  selector:
    matchLabels:
      {{- include "process.selector" . | nindent 6 }}
  endpoints:
    - port: metrics
      interval: {{ .root.Values.serviceMonitor.interval }}
{{- end }}
{{- end }}
