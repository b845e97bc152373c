{{/* What all names begin with: "nodewise", unless the release is called otherwise. */}}
{{- define "nodewise.name" -}}
{{- if contains "nodewise" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-nodewise{{ end -}}
{{- end }}

{{/* Labels of everything. */}}
{{- define "nodewise.common" -}}
app.kubernetes.io/part-of: nodewise
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* The pods of one part: (list . "server"). */}}
{{- define "nodewise.selector" -}}
app.kubernetes.io/name: nodewise-{{ index . 1 }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
{{- end }}

{{- define "nodewise.selectAll" -}}
app.kubernetes.io/part-of: nodewise
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Labels of what belongs to one part: (list . "server"). */}}
{{- define "nodewise.labels" -}}
app.kubernetes.io/name: nodewise-{{ index . 1 }}
{{ include "nodewise.common" (index . 0) }}
{{- end }}

{{/* The image of one part: (list . "server"). */}}
{{- define "nodewise.image" -}}
{{- $image := (index . 0).Values.image -}}
{{- with $image.registry }}{{ . }}/{{ end }}nodewise-{{ index . 1 }}:{{ $image.tag | default (index . 0).Chart.AppVersion }}
{{- end }}

{{- define "nodewise.tls" -}}
{{- if ne .Values.tls.source "plaintext" }}true{{ end -}}
{{- end }}

{{- define "nodewise.serverSecret" -}}
{{ .Values.tls.serverSecret | default (printf "%s-server-tls" (include "nodewise.name" .)) }}
{{- end }}

{{- define "nodewise.executorSecret" -}}
{{ .Values.tls.executorSecret | default (printf "%s-executor-tls" (include "nodewise.name" .)) }}
{{- end }}

{{/* The executor, to the service. */}}
{{- define "nodewise.executorIdentity" -}}
spiffe://{{ .Values.tls.trustDomain }}/ns/{{ .Release.Namespace }}/sa/{{ include "nodewise.name" . }}-executor
{{- end }}

{{/* Who may ask the service. With nobody named it would be whoever has a certificate of the authority. */}}
{{- define "nodewise.allowedClients" -}}
{{- $clients := .Values.tls.allowedClients -}}
{{- if .Values.executor.enabled }}{{ $clients = prepend $clients (include "nodewise.executorIdentity" .) }}{{ end -}}
{{- required "tls.allowedClients: without the executor somebody else must be named" (join "," $clients) -}}
{{- end }}

{{/* What the pods of both parts have in common. */}}
{{- define "nodewise.pod" -}}
enableServiceLinks: false
# After SIGTERM work in hand is ended, for 20 s at most (--drain-timeout).
terminationGracePeriodSeconds: 30
{{- if ne .Values.mode "observe" }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What the containers of both parts have in common. */}}
{{- define "nodewise.container" -}}
imagePullPolicy: {{ .Values.image.pullPolicy }}
readinessProbe:
  httpGet:
    path: /readyz
    port: http
  periodSeconds: 5
livenessProbe:
  httpGet:
    path: /healthz
    port: http
  periodSeconds: 10
  timeoutSeconds: 5
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- if include "nodewise.tls" . }}
volumeMounts:
  - name: tls
    mountPath: /etc/nodewise/tls
    readOnly: true
{{- end }}
{{- end }}

{{- define "nodewise.tracingEnv" -}}
{{- with .Values.tracing.endpoint }}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ . }}
{{- end }}
{{- end }}

{{/* Egress to the cluster's DNS; without a word where it is there is none, since an empty `to` means everywhere. */}}
{{- define "nodewise.dns" -}}
{{- with .Values.networkPolicy.dns -}}
- to:
    {{- toYaml . | nindent 4 }}
  ports:
    - port: 53
      protocol: UDP
    - port: 53
      protocol: TCP
{{- end }}
{{- end }}
