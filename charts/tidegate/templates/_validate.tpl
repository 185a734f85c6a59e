{{/* Ends with all that is wrong with the values, as far as the schema cannot say it. */}}
{{- define "tidegate.validate" -}}
{{- with include "tidegate.wrong" . | trim }}
{{- fail (printf "\n\nthe values for tidegate are not right:\n\n%s\n" .) }}
{{- end }}
{{- end }}

{{/* What is wrong, an item for each mistake, which says what to set. */}}
{{- define "tidegate.wrong" -}}
{{- $v := .Values }}
{{- $name := include "tidegate.name" . }}
{{- if not $v.instance }}
- instance: give this installation a name that no other controller has, such as prod
{{- else if or (not (regexMatch "^[a-z0-9]+(-[a-z0-9]+)*$" $v.instance)) (gt (len $v.instance) 30) }}
- instance: {{ quote $v.instance }} is no name for it: at most 30 lower-case letters, digits and single '-' between them
{{- end }}
{{- if not (regexMatch "^[a-z][a-z0-9]*(-[a-z0-9]+)*$" .Release.Name) }}
- the release's name {{ quote .Release.Name }}: choose one of lower-case letters, digits and single '-' between
  them, the first a letter; '--' stands between release and instance in all names
{{- end }}
{{- $most := ternary 53 63 (and $v.guardUninstall (ne 0 (int $v.replicas))) }}
{{- if gt (len $name) $most }}
- the release's name and the instance make {{ quote $name }}: shorten one of them,
  since in the names of a Service and of a Job there is room for {{ $most }} characters
{{- end }}
{{- include "tidegate.wrongRepository" . }}
{{- include "tidegate.wrongProviders" . }}
{{- if not $v.image.repository }}
- image.repository: say where the image is, such as registry.example.test/tidegate
{{- else if regexMatch "@|:[^/]*$" $v.image.repository }}
- image.repository: leave tag and digest out of it and set image.tag or image.digest
{{- else if not (regexMatch (include "tidegate.imageName" .) $v.image.repository) }}
- image.repository: {{ quote $v.image.repository }} is no name of an image: it is HOST/PATH, the path in lower case
{{- end }}
{{- include "tidegate.wrongNamespaces" . }}
{{- if $v.nodes.enabled }}{{ include "tidegate.wrongNodes" . }}{{ end }}
{{- include "tidegate.wrongAmounts" . }}
{{- include "tidegate.wrongTimes" . }}
{{- include "tidegate.wrongTolerations" . }}
{{- include "tidegate.wrongPorts" . }}
{{- with $v.repository.webhook }}{{ if and .secretName (eq (int .port) (int $v.service.port)) }}
- repository.webhook.port: {{ .port }} is service.port, where metrics and health are: choose another one for webhooks
{{- end }}{{ end }}
{{- if and $v.kinds (not (has "Deployment" $v.kinds)) (not (has "StatefulSet" $v.kinds)) (not (has "DaemonSet" $v.kinds)) }}
- kinds: without Deployment, StatefulSet or DaemonSet there is nothing to roll out: add it, or leave the list empty
{{- end }}
{{- if and (not $v.serviceAccount.create) (not $v.serviceAccount.name) }}
- serviceAccount.name: name the ServiceAccount that is there already, or set serviceAccount.create=true
{{- end }}
{{- if and $v.prometheusRule.enabled (not $v.serviceMonitor.enabled) }}
- prometheusRule.enabled: set serviceMonitor.enabled=true too, since the alerts select the job that it makes
{{- end }}
{{- if and $v.prometheusRule.enabled (not $v.replicas) }}
- prometheusRule.enabled: set it to false where replicas=0, since there is nothing that could be watched
{{- end }}
{{- if and (not $v.replicas) $v.cluster.kubeconfig.secretName }}
- replicas: 0 makes rights alone, and with cluster.kubeconfig.secretName they are in another cluster, where this chart
  makes none: leave one of the two out
{{- end }}
{{- end }}

{{/* The name of an image without tag and digest, as an expression: a host with a dot or a port, and a path. */}}
{{- define "tidegate.imageName" -}}
{{- $part := "[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*" -}}
{{- $host := "[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?" -}}
^({{ $host }}([.]{{ $host }})*(:[0-9]{1,5})?/|\[[0-9a-fA-F:]+\](:[0-9]{1,5})?/)?{{ $part }}(/{{ $part }})*$
{{- end }}

{{/* What a pod asks for beyond what it may have, and a cache in which no fetch has room. */}}
{{- define "tidegate.wrongAmounts" -}}
{{- $requests := .Values.resources.requests | default dict }}
{{- range $what, $limit := .Values.resources.limits | default dict }}
{{- $request := get $requests $what }}
{{- if and $limit $request (gt (include "tidegate.amount" $request | float64) (include "tidegate.amount" $limit | float64)) }}
- resources.requests.{{ $what }}: {{ $request }} is more than resources.limits.{{ $what }} ({{ $limit }}): lower the one or raise the other
{{- end }}
{{- end }}
{{- $memory := get (.Values.resources.limits | default dict) "memory" }}
{{- if and $memory (lt (include "tidegate.amount" $memory | float64) 100663296.0) }}
- resources.limits.memory: {{ toString $memory | quote }} is too small: with nothing to do the program takes some 60Mi; use 96Mi at least
{{- end }}
{{- $cache := .Values.cache.sizeLimit }}
{{- if le (include "tidegate.amount" $cache | float64) 268435456.0 }}
- cache.sizeLimit: {{ toString $cache | quote }} is too small: a fetch alone may take 256Mi; use more, such as 1Gi
{{- end }}
{{- end }}

{{/* An amount such as 50m, 1.5 or 128Mi as a number. */}}
{{- define "tidegate.amount" -}}
{{- if kindIs "string" . }}
{{- $unit := regexFind "[A-Za-z]+$" . }}
{{- $units := dict "m" 0.001 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 }}
{{- mulf (trimSuffix $unit . | float64) (get $units $unit | default 1.0) }}
{{- else }}{{ . }}{{ end }}
{{- end }}

{{/* Times that are over before they begin. */}}
{{- define "tidegate.wrongTimes" -}}
{{- $alerts := .Values.prometheusRule }}
{{- $times := dict "serviceMonitor.interval" .Values.serviceMonitor.interval }}
{{- range list "silentFor" "decisionFor" }}{{ $_ := set $times (print "prometheusRule." .) (get $alerts .) }}{{ end }}
{{- range $name, $time := $times }}{{ if eq (include "tidegate.seconds" $time) "0" }}
- {{ $name }}: {{ quote $time }} is no time: use whole hours, minutes and seconds, such as 30s or 1m30s
{{- end }}{{ end }}
{{- $interval := include "tidegate.seconds" .Values.serviceMonitor.interval | int }}
{{- $most := div (include "tidegate.seconds" $alerts.silentFor | int) 2 | min 120 }}
{{- if and $alerts.enabled (gt $interval $most) }}
- serviceMonitor.interval: {{ .Values.serviceMonitor.interval }} is too long for the alerts, which count what happened in 5m and in
  prometheusRule.silentFor ({{ $alerts.silentFor }}): use {{ $most }}s at most
{{- end }}
{{- end }}

{{/* The rules of core/v1 Toleration. */}}
{{- define "tidegate.wrongTolerations" -}}
{{- range $at, $toleration := .Values.tolerations }}
{{- $exists := eq (get $toleration "operator" | default "Equal") "Exists" }}
{{- if and (not (get $toleration "key")) (not $exists) }}
- tolerations[{{ $at }}]: without a key it is for all taints, and needs operator: Exists
{{- end }}
{{- if and $exists (get $toleration "value") }}
- tolerations[{{ $at }}].value: operator Exists takes no value: leave it out
{{- end }}
{{- if and (hasKey $toleration "tolerationSeconds") (ne (get $toleration "effect") "NoExecute") }}
- tolerations[{{ $at }}].tolerationSeconds: only with effect: NoExecute a pod is put up with for a while
{{- end }}
{{- end }}
{{- end }}

{{/* The rules of networking/v1 NetworkPolicyPort that are about two fields. */}}
{{- define "tidegate.wrongPorts" -}}
{{- range $rule, $egress := .Values.networkPolicy.egress }}{{ range $at, $port := $egress.ports }}
{{- $path := printf "networkPolicy.egress[%d].ports[%d].endPort" $rule $at }}
{{- if hasKey $port "endPort" }}
{{- if or (not (hasKey $port "port")) (kindIs "string" (get $port "port")) }}
- {{ $path }}: a range begins at a port: give port as a number
{{- else if lt (int $port.endPort) (int $port.port) }}
- {{ $path }}: {{ $port.endPort }} is below port {{ $port.port }}
{{- end }}
{{- end }}
{{- end }}{{ end }}
{{- end }}

{{/* How the address of a server begins, as an expression: scheme, host, and a port up to 65535. */}}
{{- define "tidegate.server" -}}
{{- $port := "[0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]" -}}
{{- $octet := "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])" -}}
{{- $address := printf "%s([.]%s){3}" $octet $octet -}}
{{- /* A last part of digits alone would be read as an address. */ -}}
{{- $part := "[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?" -}}
{{- $last := "([A-Za-z]|[0-9]([A-Za-z0-9_-]*[0-9_-])?[A-Za-z])([A-Za-z0-9_-]*[A-Za-z0-9])?" -}}
^https?://(({{ $part }}[.])*{{ $last }}|{{ $address }}|\[[0-9a-fA-F]*:[0-9a-fA-F:]*\])(:0*({{ $port }}))?
{{- end }}

{{/* The rules of the Installation for providers, so that they are told before a pod starts. */}}
{{- define "tidegate.wrongProviders" -}}
{{- $server := include "tidegate.server" . }}
{{- range $name, $provider := .Values.providers }}{{ range $kind, $asked := $provider }}
{{- if not (regexMatch (print $server "(/[!\"$->@-~]*)?$") $asked.url) }}
- providers.{{ $name }}.{{ $kind }}.url: this cannot be used: it is https://HOST/PATH or http://HOST/PATH, with a port up to
  65535, without user, password, '?' and '#'
{{- end }}
{{- end }}{{ end }}
{{- end }}

{{/* The same for the repository. */}}
{{- define "tidegate.wrongRepository" -}}
{{- $server := include "tidegate.server" . }}
{{- with .Values.repository }}
{{- if not .url }}
- repository.url: say where the repository is, such as https://git.example.test/shop.git
{{- else if regexMatch "^[^/:]+@[^/:]+:" .url }}
- repository.url: {{ quote .url }} is for ssh: write it as ssh://git@HOST/PATH, and name its Secret in repository.ssh.secretName
{{- else if hasPrefix "ssh://" .url }}
{{- include "tidegate.wrongSsh" . }}
{{- else if regexMatch "^https?://[^/]*@" .url }}
- repository.url: leave user and password out of it and name a Secret with them in repository.credentials.secretName
{{- else if not (regexMatch (print $server "/[!\"$-,.->@-~][!\"$->@-~]*$") .url) }}
- repository.url: {{ quote .url }} cannot be used: it is https://HOST/PATH or http://HOST/PATH, with a port up to 65535,
  without '?' and '#'
{{- end }}
{{- if and .ssh.secretName (not (hasPrefix "ssh://" .url)) }}
- repository.ssh.secretName: only a repository behind ssh://git@HOST/PATH has it: leave it out, or change repository.url
{{- end }}
{{- if and .allowedSigners.secretName .allowedSigners.configMapName }}
- repository.allowedSigners: name a Secret or a ConfigMap, not both
{{- end }}
{{- if and .keyring.secretName .keyring.configMapName }}
- repository.keyring: name a Secret or a ConfigMap, not both
{{- end }}
{{- $odd := regexMatch "^(tidegate|refs)/|^HEAD$|(^|/)[.-]|[.](/|$)|[.]lock(/|$)|[.][.]|//|^/|/$" .branch }}
{{- if or $odd (not (regexMatch "^[A-Za-z0-9/_.+-]{1,200}$" .branch)) }}
- repository.branch: {{ quote .branch }} is no name of a branch
{{- end }}
{{- with .forge }}
{{- if and (ne .kind "branch") (not .token.secretName) (not .app.secretName) }}
- repository.forge.token.secretName: {{ .kind }} needs the Secret with the API token of the controller's account there
{{- else if and (eq .kind "branch") (or .url .token.secretName .app.secretName .repositoryId) }}
- repository.forge.kind: with branch no API is asked: say gitea, github or gitlab, or leave url, token, app and repositoryId out
{{- else if and .token.secretName .app.secretName }}
- repository.forge.app.secretName: name the Secret of a token or that of an App, not both
{{- else if and .app.secretName (ne .kind "github") }}
- repository.forge.app.secretName: only github has Apps: name the Secret of a token in repository.forge.token
{{- else if and .app.secretName (not .app.id) }}
- repository.forge.app.id: which App is it? Say its App ID or its client ID
{{- end }}
{{- if and (not .app.secretName) (or .app.id .app.installation) }}
- repository.forge.app.secretName: name the Secret with the private key of the App {{ .app.id }}
{{- end }}
{{- if and (include "tidegate.gitByApp" $) $.Values.repository.credentials.secretName }}
- repository.credentials.secretName: leave it out: over https Git is let in by the App of repository.forge.app
{{- end }}
{{- if and .url (not (regexMatch (print $server "(/[!\"$->@-~]*)?$") .url)) }}
- repository.forge.url: this cannot be used: it is https://HOST/PATH or http://HOST/PATH, with a port up to 65535, without
  user, password, '?' and '#'
{{- end }}
{{- if and (ne .kind "branch") (not (regexMatch "://[^/]+(/[^/]+)*/[A-Za-z0-9._-]+/[A-Za-z0-9._-]+/?$" $.Values.repository.url)) }}
- repository.url: with {{ .kind }} it ends with the repository's owner and name: https://HOST/OWNER/NAME.git
{{- end }}
{{- end }}
{{- if not (regexMatch "^([0-9]{1,2}h)?([0-9]{1,4}m)?([0-9]{1,4}s)?$" .poll) | or (not .poll) }}
- repository.poll: {{ quote .poll }} is no time: use whole hours, minutes and seconds, such as 30s or 1m30s
{{- else if $.Values.prometheusRule.enabled }}
{{- $silent := $.Values.prometheusRule.silentFor }}
{{- if ge (include "tidegate.seconds" .poll | int) (include "tidegate.seconds" $silent | int) }}
- prometheusRule.silentFor: {{ $silent }} is not longer than repository.poll ({{ .poll }}): it would alert at rest
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The same for one behind SSH. */}}
{{- define "tidegate.wrongSsh" -}}
{{- $server := include "tidegate.server" . | replace "^https?://" "^ssh://([A-Za-z0-9][A-Za-z0-9._-]*@)?" }}
{{- $part := "([A-Za-z0-9_~+@]|[.][A-Za-z0-9_~+@-]|[.][.][A-Za-z0-9._~+@-])[A-Za-z0-9._~+@-]*" }}
{{- if not (regexMatch (print $server "/" $part "(/(" $part ")?)*$") .url) }}
- repository.url: this cannot be used: it is ssh://git@HOST/PATH, with a port up to 65535, without a password, and with letters,
  digits and / . _ ~ + @ - in the path, no part of which begins with -
{{- end }}
{{- if not .ssh.secretName }}
- repository.ssh.secretName: a repository behind ssh:// needs the Secret with the private key and the keys of the host
{{- end }}
{{- if .credentials.secretName }}
- repository.credentials.secretName: leave it out: behind ssh:// the key of repository.ssh lets in
{{- end }}
{{- end }}

{{/* The seconds of a time such as 1h2m3s. */}}
{{- define "tidegate.seconds" -}}
{{- $part := dict }}
{{- range $unit, $seconds := dict "h" 3600 "m" 60 "s" 1 }}
{{- $number := regexFind (print "[0-9]+" $unit) $ | trimSuffix $unit | default "0" | atoi }}
{{- $_ := set $part $unit (mul $number $seconds) }}
{{- end }}
{{- add $part.h $part.m $part.s }}
{{- end }}

{{- define "tidegate.wrongNamespaces" -}}
{{- $v := .Values }}
{{- $elsewhere := $v.cluster.kubeconfig.secretName }}
{{- range list "kube-system" "kube-public" "kube-node-lease" }}{{ if has . $v.namespaces }}
- namespaces: {{ . }} is the cluster's own, where a rollout could take the cluster over: take it out of the list
{{- end }}{{ end }}
{{- if not $v.namespaces }}
- namespaces: list the namespaces that rollouts may live in, such as [shop]
{{- end }}
{{- if and (has .Release.Namespace $v.namespaces) (not $elsewhere) }}
- namespaces: {{ .Release.Namespace }} is the release's own, where a rollout could mount the Secrets of the controller:
  install the release in another namespace, or take this one out of the list
{{- end }}
{{- if and (not $elsewhere) $v.rbac.create $v.rbac.clusterIdentity }}
{{- include "tidegate.wrongInCluster" . }}
{{- end }}
{{- end }}

{{/*
What does not fit the cluster. It is asked only where the release makes a ClusterRole: who may do so may look at these.
`helm template` asks no cluster and finds nothing, not even kube-system.
*/}}
{{- define "tidegate.wrongInCluster" -}}
{{- if lookup "v1" "Namespace" "" "kube-system" }}
{{- range .Values.namespaces }}{{ if not (lookup "v1" "Namespace" "" .) }}
- namespaces: {{ . }} is not in this cluster: make it first (kubectl create namespace {{ . }}), or take it
  out of the list
{{- end }}{{ end }}
{{- $own := print (include "tidegate.role" .) ":identity" }}
{{- range (lookup "rbac.authorization.k8s.io/v1" "ClusterRole" "" "").items }}
{{- $parts := splitList ":" .metadata.name }}
{{- $theirs := and (hasPrefix "tidegate:" .metadata.name) (eq (len $parts) 5) (ne .metadata.name $own) }}
{{- if and $theirs (eq (index $parts 3) $.Values.instance) }}
- instance: {{ $.Values.instance }} is that of the release {{ index $parts 2 }} in namespace {{ index $parts 1 }}:
  give each its own
{{- end }}
{{- if and $theirs (has (index $parts 1) $.Values.namespaces) }}
- namespaces: {{ index $parts 1 }} is that of the release {{ index $parts 2 }}, where a rollout could mount the Secrets of its
  controller: take it out of the list
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* What an agent lacks. */}}
{{- define "tidegate.wrongNodes" -}}
{{- $nodes := .Values.nodes }}
{{- $agent := $nodes.agent }}
{{- if not (has $nodes.namespace .Values.namespaces) }}
- nodes.namespace: name the namespace of the rollout of nodes, one of namespaces ({{ join ", " .Values.namespaces }})
{{- end }}
{{- if and $agent.files $agent.driver }}
- nodes.agent.driver: leave it out where nodes.agent.files is set, which has a driver of its own
{{- else if not (or $agent.files $agent.driver) }}
- nodes.agent.files: name the directory that contents are put into force as, such as /etc/fabric/files, or a program as
  nodes.agent.driver
{{- end }}
{{- if eq (include "tidegate.seconds" $agent.limit) "0" }}
- nodes.agent.limit: {{ quote $agent.limit }} is no time: use whole hours, minutes and seconds, such as 30s or 1m30s
{{- end }}
{{- if .Values.cluster.kubeconfig.secretName }}
- nodes.enabled: set it to false where cluster.kubeconfig.secretName is set, since the agents are made in this cluster
{{- end }}
{{- if not (semverCompare ">=1.33-0" .Capabilities.KubeVersion.Version) }}
- nodes.enabled: set it to false, or install into Kubernetes 1.33 or newer (this one is {{ .Capabilities.KubeVersion.Version }}): before,
  nothing can keep an agent to its own node
{{- end }}
{{- end }}
