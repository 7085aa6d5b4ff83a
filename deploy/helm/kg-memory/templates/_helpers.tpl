{{- define "kg-memory.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "kg-memory.secret" -}}
{{- required "secret must name a secret with FALKORDB_PASSWORD, or KG_MEMORY_URL, and the keys of models" .Values.secret -}}
{{- end -}}

{{- define "kg-memory.labels" -}}
app.kubernetes.io/name: kg-memory
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "kg-memory.pod" -}}
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  seccompProfile: {type: RuntimeDefault}
volumes:
  - name: tmp
    emptyDir: {}
{{- end -}}

{{- define "kg-memory.container" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
envFrom:
  - secretRef: {name: {{ include "kg-memory.secret" . }}}
env:
  - {name: HOME, value: /tmp}
  {{- if .Values.falkordb.enabled }}
  - name: FALKORDB_PASSWORD
    valueFrom: {secretKeyRef: {name: {{ include "kg-memory.secret" . }}, key: FALKORDB_PASSWORD}}
  - {name: KG_MEMORY_URL, value: "falkor://:$(FALKORDB_PASSWORD)@{{ include "kg-memory.name" . }}-falkordb:6379"}
  {{- end }}
  {{- range $name, $value := .Values.settings }}
  - {name: {{ $name }}, value: {{ $value | quote }}}
  {{- end }}
{{- end -}}
