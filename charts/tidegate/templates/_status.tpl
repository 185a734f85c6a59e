{{/*
The spec of a pod that runs `tidegate status` once, with what it takes besides the repository (`more`). It reaches the
Git host as the controller does, and no API server.
*/}}
{{- define "tidegate.statusPod" -}}
{{- $more := .more }}
{{- with .root -}}
restartPolicy: Never
automountServiceAccountToken: false
enableServiceLinks: false
securityContext: {{- include "tidegate.podSecurity" . | nindent 2 }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
containers:
  - name: status
    image: {{ include "tidegate.image" . }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    args:
      - status
      {{- range $more }}
      - {{ . }}
      {{- end }}
      - --repo={{ .Values.repository.url }}
      - --branch={{ .Values.repository.branch }}
      - --instance={{ .Values.instance }}
      {{- if .Values.repository.credentials.secretName }}
      - --credentials-file={{ include "tidegate.credentialsFile" . }}
      {{- end }}
    env:
      - {name: TMPDIR, value: /tmp}
      {{- with include "tidegate.gitEnvironment" . | trim }}{{ . | nindent 6 }}{{ end }}
    resources: {{- include "tidegate.resources" . | trim | default "{}" | nindent 6 }}
    securityContext: {{- include "tidegate.containerSecurity" . | nindent 6 }}
    terminationMessagePolicy: FallbackToLogsOnError
    volumeMounts:
      - {name: tmp, mountPath: /tmp}
      {{- with include "tidegate.gitMounts" . | trim }}{{ . | nindent 6 }}{{ end }}
volumes:
  - name: tmp
    emptyDir: {sizeLimit: {{ .Values.cache.sizeLimit }}}
  {{- with include "tidegate.gitVolumes" . | trim }}{{ . | nindent 2 }}{{ end }}
{{- end }}
{{- end }}

{{/* The metadata of a pod that is not the controller's: no Service and no budget counts it. */}}
{{- define "tidegate.statusLabels" -}}
app.kubernetes.io/name: tidegate-{{ .what }}
app.kubernetes.io/instance: {{ include "tidegate.name" .root }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end }}
