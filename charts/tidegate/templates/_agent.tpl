{{/* What the agents' pods are selected by: it can never change, and selects no other pod of a release. */}}
{{- define "tidegate.agentSelector" -}}
app.kubernetes.io/name: tidegate-agent
app.kubernetes.io/instance: {{ printf "%s-agent" (include "tidegate.name" .) | quote }}
{{- end }}

{{- define "tidegate.agentLabels" -}}
{{- mergeOverwrite (include "tidegate.labels" . | fromYaml) (include "tidegate.agentSelector" . | fromYaml) | toYaml }}
{{- end }}

{{- define "tidegate.agentMetadata" -}}
name: {{ printf "%s-agent" (include "tidegate.name" .) | quote }}
namespace: {{ .Release.Namespace | quote }}
labels: {{- include "tidegate.agentLabels" . | nindent 2 }}
{{- end }}

{{/* The name of the policy, which is the cluster's: other releases have theirs. No part can hold a dot. */}}
{{- define "tidegate.agentPolicy" -}}
tidegate.{{ .Release.Namespace }}.{{ include "tidegate.name" . }}.agent
{{- end }}

{{- define "tidegate.agentBinding" -}}
{{- $name := printf "%s:agent" (include "tidegate.role" .root) -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}Binding
metadata:
  name: {{ $name | quote }}
  {{- with .namespace }}
  namespace: {{ . | quote }}
  {{- end }}
  labels: {{- include "tidegate.agentLabels" .root | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: {{ .kind }}, name: {{ $name | quote }}}
subjects:
  - kind: ServiceAccount
    name: {{ printf "%s-agent" (include "tidegate.name" .root) | quote }}
    namespace: {{ .root.Release.Namespace | quote }}
{{- end }}

{{- define "tidegate.agentPods" -}}
{{- $name := .name }}
{{- with .root -}}
{{- $agent := .Values.nodes.agent -}}
apiVersion: apps/v1
kind: DaemonSet
metadata: {{- include "tidegate.agentMetadata" . | nindent 2 }}
spec:
  selector:
    matchLabels: {{- include "tidegate.agentSelector" . | nindent 6 }}
  updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}
  template:
    metadata:
      labels: {{- include "tidegate.agentSelector" . | nindent 8 }}
      {{- with $agent.probes }}
      # The file is read once, at the start: another one starts other pods.
      annotations: {tidegate.io/probes: {{ toYaml . | sha256sum | quote }}}
      {{- end }}
    spec:
      serviceAccountName: {{ $name | quote }}
      automountServiceAccountToken: true
      enableServiceLinks: false
      # What it configures, and the way to the API server that does not depend on pods.
      hostNetwork: true
      dnsPolicy: ClusterFirstWithHostNet
      priorityClassName: system-node-critical
      # A change that is open is brought to its end, if it takes no longer; else it is taken back by the next start.
      terminationGracePeriodSeconds: 120
      securityContext: {runAsUser: 0, seccompProfile: {type: RuntimeDefault}}
      {{- with .Values.image.pullSecrets }}
      imagePullSecrets:
        {{- range . }}
        - name: {{ . | quote }}
        {{- end }}
      {{- end }}
      {{- with $agent.nodeSelector }}
      nodeSelector: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $agent.tolerations }}
      tolerations: {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: agent
          image: {{ include "tidegate.image" . | quote }}
          imagePullPolicy: {{ .Values.image.pullPolicy | quote }}
          args:
            - agent
            - {{ printf "--namespace=%s" .Values.nodes.namespace | quote }}
            - {{ printf "--state=%s" $agent.state | quote }}
            {{- with $agent.files }}
            - {{ printf "--files=%s" . | quote }}
            {{- end }}
            {{- with $agent.driver }}
            - {{ printf "--driver=%s" . | quote }}
            {{- end }}
            - {{ printf "--limit=%s" $agent.limit | quote }}
            {{- if $agent.probes }}
            - --probes=/etc/tidegate/agent/probes.yaml
            {{- end }}
            {{- with $agent.startupTaint }}
            - {{ printf "--startup-taint=%s" . | quote }}
            {{- end }}
            - {{ printf "--log=%s" .Values.log.form | quote }}
          env:
            - name: TIDEGATE_NODE
              valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
          resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {memory: 64Mi}}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: [ALL], add: {{ $agent.capabilities | toJson }}}
          volumeMounts:
            - {name: state, mountPath: {{ $agent.state | quote }}}
            {{- with $agent.files }}
            - {name: files, mountPath: {{ dir . | quote }}}
            {{- end }}
            {{- with $agent.driver }}
            - {name: driver, mountPath: {{ dir . | quote }}, readOnly: true}
            {{- end }}
            {{- if $agent.probes }}
            - {name: probes, mountPath: /etc/tidegate/agent, readOnly: true}
            {{- end }}
      volumes:
        - name: state
          hostPath: {path: {{ $agent.state | quote }}, type: DirectoryOrCreate}
        {{- with $agent.files }}
        - name: files
          hostPath: {path: {{ dir . | quote }}, type: DirectoryOrCreate}
        {{- end }}
        {{- with $agent.driver }}
        - name: driver
          hostPath: {path: {{ dir . | quote }}, type: Directory}
        {{- end }}
        {{- if $agent.probes }}
        - name: probes
          configMap: {name: {{ $name | quote }}}
        {{- end }}
{{- end }}
{{- end }}
