{{/* What both kinds of pods have in common. */}}

{{/* Call with the values that go before it; merge would take false, or null, for nothing. */}}
{{- define "vnode.podSecurity" -}}
{{- $security := dict
  "runAsNonRoot" true
  "runAsUser" 65532
  "runAsGroup" 65532
  "fsGroup" 65532
  "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- range $field, $value := . -}}
{{- $_ := set $security $field $value -}}
{{- end -}}
{{- toYaml $security -}}
{{- end -}}

{{- define "vnode.containerSecurity" -}}
allowPrivilegeEscalation: false
capabilities: {drop: [ALL]}
readOnlyRootFilesystem: true
{{- end -}}

{{/* Call with a container of the values: the chart's securityContext is under its own, as above. */}}
{{- define "vnode.initContainer" -}}
{{- $security := include "vnode.containerSecurity" . | fromYaml -}}
{{- range $field, $value := .securityContext | default dict -}}
{{- $_ := set $security $field $value -}}
{{- end -}}
{{- set (omit . "securityContext") "securityContext" $security | toYaml -}}
{{- end -}}

{{/*
Call with (list . VALUES COMPONENT). Replicas keep apart, and off virtual nodes: a toleration of
everything would otherwise let them through.
*/}}
{{- define "vnode.placement" -}}
{{- $values := index . 1 -}}
{{- $selector := include "vnode.selector" (list (index . 0) (index . 2)) | fromYaml -}}
{{- $real := dict "requiredDuringSchedulingIgnoredDuringExecution" (dict "nodeSelectorTerms" (list (dict "matchExpressions" (list (dict "key" "virtual-kubelet.io/provider" "operator" "DoesNotExist"))))) -}}
affinity:
  {{- merge (dict) $values.affinity (dict "nodeAffinity" $real) | toYaml | nindent 2 }}
topologySpreadConstraints:
  {{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- toYaml $selector | nindent 8 }}
  {{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
