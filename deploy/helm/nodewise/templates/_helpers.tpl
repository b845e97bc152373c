{{/* The prefix of all names: the name of the release, with "-nodewise" appended unless it contains "nodewise". */}}
{{- define "nodewise.name" -}}
{{- if contains "nodewise" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-nodewise{{ end -}}
{{- end }}

{{/* Labels of all objects. */}}
{{- define "nodewise.common" -}}
app.kubernetes.io/part-of: nodewise
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* Selects the pods of one component: (list . "server"). */}}
{{- define "nodewise.selector" -}}
app.kubernetes.io/name: nodewise-{{ index . 1 }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
{{- end }}

{{- define "nodewise.selectAll" -}}
app.kubernetes.io/part-of: nodewise
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Labels of the objects of one component: (list . "server"). */}}
{{- define "nodewise.labels" -}}
app.kubernetes.io/name: nodewise-{{ index . 1 }}
{{ include "nodewise.common" (index . 0) }}
{{- end }}

{{/* The image of one component: (list . "server"). */}}
{{- define "nodewise.image" -}}
{{- $image := (index . 0).Values.image -}}
{{- with $image.registry }}{{ . }}/{{ end }}nodewise-{{ index . 1 }}:{{ $image.tag | default (index . 0).Chart.AppVersion }}
{{- with index $image.digests (index . 1) }}@{{ . }}{{ end }}
{{- end }}

{{/* The metadata of both Deployments, without the name: (list . "server"). */}}
{{- define "nodewise.deploymentMetadata" -}}
labels:
  {{- include "nodewise.labels" . | nindent 2 }}
{{- with (index . 0).Values.annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The metadata of the pods of one component: (list . "server"). */}}
{{- define "nodewise.podMetadata" -}}
labels:
  {{- include "nodewise.labels" . | nindent 2 }}
{{- with (index . 0).Values.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
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

{{/* The name in the executor's client certificate. */}}
{{- define "nodewise.executorIdentity" -}}
spiffe://{{ .Values.tls.trustDomain }}/ns/{{ .Release.Namespace }}/sa/{{ include "nodewise.name" . }}-executor
{{- end }}

{{/* Names of the clients that the service allows. With an empty list it would allow every certificate of the authority. */}}
{{- define "nodewise.allowedClients" -}}
{{- $clients := .Values.tls.allowedClients -}}
{{- if .Values.executor.enabled }}{{ $clients = prepend $clients (include "nodewise.executorIdentity" .) }}{{ end -}}
{{- required "tls.allowedClients: without the executor somebody else must be named" (join "," $clients) -}}
{{- end }}

{{/* Fields of the pods of both components. */}}
{{- define "nodewise.pod" -}}
enableServiceLinks: false
# After SIGTERM the program finishes its work, for at most 20 s (--drain-timeout).
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

{{/* Fields of the container of one component: (list . "server"). */}}
{{- define "nodewise.container" -}}
{{- $root := index . 0 -}}
{{- $mountsCredentials := and (eq (index . 1) "executor") $root.Values.executor.analysis.credentialsSecret -}}
{{- $mountsAuthorities := and (eq (index . 1) "executor") $root.Values.executor.analysis.caConfigMap -}}
{{- with $root -}}
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
{{- if or (include "nodewise.tls" .) (include "nodewise.tracingTls" .) $mountsCredentials $mountsAuthorities }}
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
  {{- if $mountsCredentials }}
  - name: analysis-credentials
    mountPath: /etc/nodewise/analysis-credentials
    readOnly: true
  {{- end }}
  {{- if $mountsAuthorities }}
  - name: analysis-ca
    mountPath: /etc/nodewise/analysis-ca
    readOnly: true
  {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The volumes of one component: (list . "server"). */}}
{{- define "nodewise.volumes" -}}
{{- $root := index . 0 -}}
{{- $analysis := dict -}}
{{- if eq (index . 1) "executor" }}{{ $analysis = $root.Values.executor.analysis }}{{ end -}}
{{- if or (include "nodewise.tls" $root) (include "nodewise.tracingTls" $root) $analysis.credentialsSecret $analysis.caConfigMap }}
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
      # Pods start without the Secret, but then export no traces.
      optional: true
  {{- end }}
  {{- with $analysis.credentialsSecret }}
  - name: analysis-credentials
    secret:
      secretName: {{ . }}
      defaultMode: 288 # 0440
      # Pods start without the Secret. Checks that need a token are errors until it is there.
      optional: true
  {{- end }}
  {{- with $analysis.caConfigMap }}
  - name: analysis-ca
    configMap:
      name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{/* "true" if the pods mount files for TLS to the collector. */}}
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

{{/* Egress to the cluster's DNS. An empty networkPolicy.dns gives no rule, because an empty `to` would allow every address. */}}
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
