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
{{- if not $v.image.repository }}
- image.repository: say where the image is, such as registry.example.test/tidegate
{{- else if regexMatch "@|:[^/]*$" $v.image.repository }}
- image.repository: leave tag and digest out of it and set image.tag or image.digest
{{- end }}
{{- include "tidegate.wrongNamespaces" . }}
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

{{/* The rules of the Installation for a repository, so that they are told before a pod starts. */}}
{{- define "tidegate.wrongRepository" -}}
{{- $port := "[0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]" }}
{{- with .Values.repository }}
{{- if not .url }}
- repository.url: say where the repository is, such as https://git.example.test/shop.git
{{- else if contains "@" .url }}
- repository.url: leave user and password out of it and name a Secret with them in repository.credentials.secretName
{{- else if not (regexMatch "^https?://[A-Za-z0-9\\[][^\\s/?#%]*/[^-\\s?#][^\\s?#]*$" .url) }}
- repository.url: {{ quote .url }} cannot be used: it is https://HOST/PATH or http://HOST/PATH, without '?' and '#'
{{- else if and (regexMatch "^https?://[^/]*:[0-9]+/" .url) (not (regexMatch (printf "^https?://[^/]*:0*(%s)/" $port) .url)) }}
- repository.url: {{ quote .url }} names a port above 65535
{{- end }}
{{- $odd := regexMatch "^tidegate/|(^|/)[.-]|[.](/|$)|[.]lock(/|$)|[.][.]|//|^/|/$" .branch }}
{{- if or $odd (not (regexMatch "^[A-Za-z0-9/_.+-]{1,200}$" .branch)) }}
- repository.branch: {{ quote .branch }} is no name of a branch
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

{{/* The seconds of a time such as 1h2m3s. */}}
{{- define "tidegate.seconds" -}}
{{- $part := dict }}
{{- range $unit, $seconds := dict "h" 3600 "m" 60 "s" 1 }}
{{- $number := regexFind (print "[0-9]+" $unit) $ | trimSuffix $unit | int }}
{{- $_ := set $part $unit (mul $number $seconds) }}
{{- end }}
{{- add $part.h $part.m $part.s }}
{{- end }}

{{- define "tidegate.wrongNamespaces" -}}
{{- $v := .Values }}
{{- $elsewhere := $v.cluster.kubeconfig.secretName }}
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
{{- end }}
{{- end }}
{{- end }}
