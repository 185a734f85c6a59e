{{/* The Installation: docs/files.md. It names Secrets and holds none. */}}
{{- define "tidegate.installation" -}}
{{- $repository := pick .Values.repository "url" "branch" "poll" }}
{{- if .Values.repository.credentials.secretName }}
{{- $_ := set $repository "credentialsFile" (include "tidegate.credentialsFile" .) }}
{{- end }}
{{- if .Values.repository.ssh.secretName }}
{{- $files := dict "keyFile" (include "tidegate.sshKeyFile" .) "knownHostsFile" (include "tidegate.knownHostsFile" .) }}
{{- $_ := set $repository "ssh" $files }}
{{- end }}
{{- with include "tidegate.signersDirectory" . }}
{{- $_ := set $repository "allowedSignersFile" (print . "/" $.Values.repository.allowedSigners.key) }}
{{- end }}
{{- with include "tidegate.keyringDirectory" . }}
{{- $_ := set $repository "keyringFile" (print . "/" $.Values.repository.keyring.key) }}
{{- end }}
{{- if .Values.repository.webhook.secretName }}
{{- $_ := set $repository "webhookSecretFile" (include "tidegate.webhookFile" .) }}
{{- end }}
{{- with .Values.repository.forge }}{{ if ne .kind "branch" }}
{{- $forge := dict "kind" .kind }}
{{- if .app.secretName }}
{{- $app := dict "id" .app.id "keyFile" (include "tidegate.appKeyFile" $) }}
{{- with .app.installation }}{{ $_ := set $app "installation" . }}{{ end }}
{{- $_ := set $forge "app" $app }}
{{- else }}
{{- $_ := set $forge "tokenFile" (include "tidegate.tokenFile" $) }}
{{- end }}
{{- if .url }}{{ $_ := set $forge "url" .url }}{{ end }}
{{- if .repositoryId }}{{ $_ := set $forge "repositoryId" (int64 .repositoryId) }}{{ end }}
{{- if not .feedback }}{{ $_ := set $forge "feedback" false }}{{ end }}
{{- $_ := set $repository "forge" $forge }}
{{- end }}{{ end }}
{{- $cluster := dict "inCluster" dict }}
{{- if .Values.cluster.kubeconfig.secretName }}
{{- $cluster = dict "kubeconfigFile" (include "tidegate.kubeconfigFile" .) }}
{{- end }}
{{- $providers := dict }}
{{- range $name, $provider := .Values.providers }}
{{- range $kind, $asked := $provider }}
{{- $spec := pick $asked "url" }}
{{- range $what, $secret := pick $asked "credentials" "hmacKey" }}
{{- $_ := set $spec (print $what "File") (include "tidegate.providerFile" (dict "name" $name "what" $what "secret" $secret)) }}
{{- end }}
{{- $_ := set $providers $name (dict $kind $spec) }}
{{- end }}{{ end }}
{{- $kinds := .Values.kinds }}
{{- range .Values.extraKinds }}
{{- $kinds = append $kinds (printf "%s/%s" .group .kind | trimPrefix "/") }}
{{- end }}
{{- $caps := dict "namespaces" .Values.namespaces "kinds" $kinds }}
{{- if .Values.nodes.enabled }}{{ $_ := set $caps "nodes" .Values.nodes.selector }}{{ end }}
{{- $clusters := dict .Values.cluster.name $cluster }}
{{- $spec := dict "instance" .Values.instance "repository" $repository "clusters" $clusters "providers" $providers }}
{{- $_ := set $spec "caps" $caps }}
{{- with .Values.signing }}{{ if .privateKey.secretName }}
{{- $_ := set $spec "signing" (dict "keyFile" (include "tidegate.signingFile" $) "trusted" .trusted) }}
{{- end }}{{ end }}
{{- $gateways := dict }}
{{- range $name, $gateway := .Values.gateways }}
{{- with $gateway.namespace }}{{ $_ := set $gateways $name (dict "namespace" .) }}{{ end }}
{{- end }}
{{- if $gateways }}{{ $_ := set $spec "gateways" $gateways }}{{ end }}
{{- if .Values.projection.enabled }}
{{- $_ := set $spec "projection" true }}
{{- end }}
{{- if .Values.repository.webhook.secretName }}
{{- $address := printf "%s:%d" (include "tidegate.listen" .) (int .Values.repository.webhook.port) }}
{{- $_ := set $spec "report" (dict "webhook" $address) }}
{{- end -}}
apiVersion: tidegate.io/v1alpha1
kind: Installation
spec: {{- $spec | toYaml | nindent 2 }}
{{- end }}

{{/* The address that pods listen at, as it stands before a port. */}}
{{- define "tidegate.listen" -}}
{{ .Values.service.listen | printf (ternary "[%s]" "%s" (contains ":" .Values.service.listen)) }}
{{- end }}
