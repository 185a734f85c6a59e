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
priorityClassName: {{ . | quote }}
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
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
containers:
  - name: tidegate
    image: {{ include "tidegate.image" . | quote }}
    imagePullPolicy: {{ .Values.image.pullPolicy | quote }}
    args:
      - status
      {{- range $more }}
      - {{ . | quote }}
      {{- end }}
      - {{ printf "--repo=%s" .Values.repository.url | quote }}
      - {{ printf "--branch=%s" .Values.repository.branch | quote }}
      - {{ printf "--instance=%s" .Values.instance | quote }}
      {{- if .Values.repository.credentials.secretName }}
      - {{ include "tidegate.credentialsFile" . | printf "--credentials-file=%s" | quote }}
      {{- end }}
      {{- if include "tidegate.gitByApp" . }}
      - --app-of=/etc/tidegate/installation/installation.yaml
      {{- end }}
      {{- if .Values.repository.ssh.secretName }}
      - {{ include "tidegate.sshKeyFile" . | printf "--ssh-key-file=%s" | quote }}
      - {{ include "tidegate.knownHostsFile" . | printf "--known-hosts-file=%s" | quote }}
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
      {{- if include "tidegate.gitByApp" . }}
      - {name: installation, mountPath: /etc/tidegate/installation, readOnly: true}
      {{- include "tidegate.appMounts" . | trim | nindent 6 }}
      {{- end }}
volumes:
  - name: tmp
    emptyDir: {sizeLimit: {{ .Values.cache.sizeLimit | quote }}}
  {{- with include "tidegate.gitVolumes" . | trim }}{{ . | nindent 2 }}{{ end }}
  {{- if include "tidegate.gitByApp" . }}
  - name: installation
    configMap: {name: {{ include "tidegate.name" . | quote }}}
  {{- include "tidegate.appVolumes" . | trim | nindent 2 }}
  {{- end }}
{{- end }}
{{- end }}

{{/*
The labels of a pod that is not the controller's: no Service and no budget counts it. It takes those of the values too,
as its annotations: a service mesh that is switched off by one of them would keep the pod from ending.
*/}}
{{- define "tidegate.statusLabels" -}}
{{- mergeOverwrite (deepCopy .root.Values.podLabels) (include "tidegate.statusOwnLabels" . | fromYaml) | toYaml }}
{{- end }}

{{- define "tidegate.statusOwnLabels" -}}
app.kubernetes.io/name: tidegate-{{ .what }}
app.kubernetes.io/instance: {{ include "tidegate.name" .root | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service | quote }}
{{- end }}
