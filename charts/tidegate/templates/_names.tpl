{{/*
The name of all that lies in the release's own namespace. Release and instance hold no "--" themselves (_validate.tpl),
so no two releases ever make the same name.
*/}}
{{- define "tidegate.name" -}}
{{ .Release.Name }}--{{ .Values.instance }}
{{- end }}

{{/* The name of roles, which may lie where other releases have theirs. No part can hold a colon. */}}
{{- define "tidegate.role" -}}
tidegate:{{ .Release.Namespace }}:{{ .Release.Name }}:{{ .Values.instance }}
{{- end }}

{{- define "tidegate.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "tidegate.name" .) }}
{{- end }}

{{- define "tidegate.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{/* What the pods are selected by: it can never change. */}}
{{- define "tidegate.selector" -}}
app.kubernetes.io/name: tidegate
app.kubernetes.io/instance: {{ include "tidegate.name" . | quote }}
{{- end }}

{{/* All labels of an object: those of the values, where it has some (`more`), and ours. */}}
{{- define "tidegate.labelsAnd" -}}
{{- mergeOverwrite (deepCopy .more) (include "tidegate.labels" .root | fromYaml) | toYaml }}
{{- end }}

{{- define "tidegate.labels" -}}
{{ include "tidegate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end }}

{{/* The name and namespace of an object of the release's own namespace. */}}
{{- define "tidegate.metadata" -}}
name: {{ include "tidegate.name" . | quote }}
namespace: {{ .Release.Namespace | quote }}
labels: {{- include "tidegate.labels" . | nindent 2 }}
{{- end }}
