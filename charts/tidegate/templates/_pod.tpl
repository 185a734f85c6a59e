{{/*
Where Secrets are mounted. The paths hold their names and keys, so that what is said about a missing file names both.
Directories and no subPath: only so does a changed Secret reach a running pod.
*/}}
{{- define "tidegate.credentialsFile" -}}
{{- with .Values.repository.credentials -}}
/etc/tidegate/git/{{ .secretName }}/{{ .key }}
{{- end -}}
{{- end }}

{{- define "tidegate.sshKeyFile" -}}
{{- with .Values.repository.ssh -}}
/etc/tidegate/ssh/{{ .secretName }}/{{ .key }}
{{- end -}}
{{- end }}

{{- define "tidegate.knownHostsFile" -}}
{{- with .Values.repository.ssh -}}
/etc/tidegate/ssh/{{ .secretName }}/{{ .knownHostsKey }}
{{- end -}}
{{- end }}

{{/* Nothing where nobody has to sign. */}}
{{- define "tidegate.signersDirectory" -}}
{{- with .Values.repository.allowedSigners }}{{ with .secretName | default .configMapName -}}
/etc/tidegate/signers/{{ . }}
{{- end }}{{ end }}
{{- end }}

{{/* Likewise. */}}
{{- define "tidegate.keyringDirectory" -}}
{{- with .Values.repository.keyring }}{{ with .secretName | default .configMapName -}}
/etc/tidegate/keyring/{{ . }}
{{- end }}{{ end }}
{{- end }}

{{- define "tidegate.tokenFile" -}}
{{- with .Values.repository.forge.token -}}
/etc/tidegate/forge/{{ .secretName }}/{{ .key }}
{{- end -}}
{{- end }}

{{- define "tidegate.appKeyFile" -}}
{{- with .Values.repository.forge.app -}}
/etc/tidegate/app/{{ .secretName }}/{{ .key }}
{{- end -}}
{{- end }}

{{- define "tidegate.webhookFile" -}}
{{- with .Values.repository.webhook -}}
/etc/tidegate/webhook/{{ .secretName }}/{{ .key }}
{{- end -}}
{{- end }}

{{- define "tidegate.signingFile" -}}
{{- with .Values.signing.privateKey -}}
/etc/tidegate/signing/{{ .secretName }}/{{ .key }}
{{- end -}}
{{- end }}

{{- define "tidegate.kubeconfigFile" -}}
{{- with .Values.cluster.kubeconfig -}}
/etc/tidegate/kubeconfig/{{ .secretName }}/{{ .key }}
{{- end -}}
{{- end }}

{{/* Of one secret of a provider: the provider's name, what it is (credentials, hmacKey), and where it stands. */}}
{{- define "tidegate.providerVolume" -}}
{{ ternary "hmac" "provider" (eq .what "hmacKey") }}-{{ .name }}
{{- end }}

{{- define "tidegate.providerDirectory" -}}
/etc/tidegate/{{ ternary "hmac" "providers" (eq .what "hmacKey") }}/{{ .name }}/{{ .secret.secretName }}
{{- end }}

{{- define "tidegate.providerFile" -}}
{{ include "tidegate.providerDirectory" . }}/{{ .secret.key }}
{{- end }}

{{- define "tidegate.caFile" -}}
/etc/tidegate/ca/{{ .Values.repository.ca.key }}
{{- end }}

{{/* The security context of a pod: the restricted profile of Pod Security. */}}
{{- define "tidegate.podSecurity" -}}
runAsNonRoot: true
{{- with .Values.runAsUser }}
runAsUser: {{ int . }}
runAsGroup: {{ int . }}
fsGroup: {{ int . }}
{{- end }}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "tidegate.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* What it takes to reach Git: volumes, mounts, environment. */}}
{{- define "tidegate.gitVolumes" -}}
{{- with .Values.repository.credentials }}{{ if .secretName }}
- name: git
  secret:
    secretName: {{ .secretName | quote }}
    items: [{key: {{ .key | quote }}, path: {{ .key | quote }}}]
    # A Secret that is not there yet is told of by the controller, and picked up when it is made.
    optional: true
    defaultMode: 288 # 0440
{{- end }}{{ end }}
{{- with .Values.repository.ssh }}{{ if .secretName }}
- name: ssh
  secret:
    secretName: {{ .secretName | quote }}
    items:
      - {key: {{ .key | quote }}, path: {{ .key | quote }}}
      - {key: {{ .knownHostsKey | quote }}, path: {{ .knownHostsKey | quote }}}
    optional: true
    defaultMode: 288 # 0440
{{- end }}{{ end }}
{{- with .Values.repository.ca }}{{ if .configMapName }}
- name: ca
  configMap:
    name: {{ .configMapName | quote }}
    items: [{key: {{ .key | quote }}, path: {{ .key | quote }}}]
{{- end }}{{ end }}
{{- end }}

{{- define "tidegate.gitMounts" -}}
{{- with .Values.repository.credentials.secretName }}
- {name: git, mountPath: {{ printf "/etc/tidegate/git/%s" . | quote }}, readOnly: true}
{{- end }}
{{- with .Values.repository.ssh.secretName }}
- {name: ssh, mountPath: {{ printf "/etc/tidegate/ssh/%s" . | quote }}, readOnly: true}
{{- end }}
{{- if .Values.repository.ca.configMapName }}
- {name: ca, mountPath: /etc/tidegate/ca, readOnly: true}
{{- end }}
{{- end }}

{{/* The key of the GitHub App that the controller is, if it is one. */}}
{{- define "tidegate.appVolumes" -}}
{{- with .Values.repository.forge.app }}{{ if .secretName }}
- name: app
  secret:
    secretName: {{ .secretName | quote }}
    items: [{key: {{ .key | quote }}, path: {{ .key | quote }}}]
    optional: true
    defaultMode: 288 # 0440
{{- end }}{{ end }}
{{- end }}

{{- define "tidegate.appMounts" -}}
{{- with .Values.repository.forge.app.secretName }}
- {name: app, mountPath: {{ printf "/etc/tidegate/app/%s" . | quote }}, readOnly: true}
{{- end }}
{{- end }}

{{/* Says something where Git is let in by the App. */}}
{{- define "tidegate.gitByApp" -}}
{{- if and .Values.repository.forge.app.secretName (not (hasPrefix "ssh://" .Values.repository.url)) }}app{{ end }}
{{- end }}

{{- define "tidegate.gitEnvironment" -}}
{{- if .Values.repository.ca.configMapName }}
- {name: SSL_CERT_FILE, value: {{ include "tidegate.caFile" . | quote }}}
{{- end }}
{{- end }}

{{- define "tidegate.resources" -}}
{{- range $what, $amounts := .Values.resources }}
{{- with include "tidegate.amounts" $amounts | trim }}
{{ $what }}: {{- . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{- define "tidegate.amounts" -}}
{{- range $resource, $amount := . }}{{ if $amount }}
{{ $resource }}: {{ $amount | quote }}
{{- end }}{{ end }}
{{- end }}
