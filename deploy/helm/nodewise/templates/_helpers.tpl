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
{{- if or (include "nodewise.tls" .) (include "nodewise.tracingTls" .) }}
volumeMounts:
  {{- if include "nodewise.tls" . }}
  - name: tls
    mountPath: /etc/nodewise/tls
    readOnly: true
  {{- end }}
  {{- if include "nodewise.tracingTls" . }}
  - name: tracing
    mountPath: /etc/nodewise/tracing
    readOnly: true
  {{- end }}
{{- end }}
{{- end }}

{{/* What is mounted there: (list . "server"). */}}
{{- define "nodewise.volumes" -}}
{{- $root := index . 0 -}}
{{- if or (include "nodewise.tls" $root) (include "nodewise.tracingTls" $root) }}
volumes:
  {{- if include "nodewise.tls" $root }}
  - name: tls
    secret:
      secretName: {{ include (printf "nodewise.%sSecret" (index . 1)) $root }}
      defaultMode: 288 # 0440
  {{- end }}
  {{- if include "nodewise.tracingTls" $root }}
  - name: tracing
    secret:
      secretName: {{ $root.Values.tracing.tls.secretName }}
      defaultMode: 288 # 0440
      # Without it there are no traces; pods start all the same.
      optional: true
  {{- end }}
{{- end }}
{{- end }}

{{/* Whether there are files for TLS to the collector. */}}
{{- define "nodewise.tracingTls" -}}
{{- $tracing := .Values.tracing -}}
{{- if and $tracing.tls.clientCertificate (not $tracing.tls.secretName) }}
{{- fail "tracing.tls: clientCertificate is in the Secret that secretName names" }}
{{- end }}
{{- if and $tracing.tls.secretName (hasPrefix "http://" (lower $tracing.endpoint)) }}
{{- fail "tracing.tls: to an endpoint that is http:// there is no TLS" }}
{{- end }}
{{- if and $tracing.endpoint $tracing.tls.secretName }}true{{ end -}}
{{- end }}

{{- define "nodewise.tracingEnv" -}}
{{- with .Values.tracing.endpoint }}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ . }}
{{- end }}
{{- if include "nodewise.tracingTls" . }}
- name: OTEL_EXPORTER_OTLP_CERTIFICATE
  value: /etc/nodewise/tracing/ca.crt
{{- if .Values.tracing.tls.clientCertificate }}
- name: OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE
  value: /etc/nodewise/tracing/tls.crt
- name: OTEL_EXPORTER_OTLP_CLIENT_KEY
  value: /etc/nodewise/tracing/tls.key
{{- end }}
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
