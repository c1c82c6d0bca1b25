{{/* Where the agent is held to .Values.namespaces: its rights in those. As vnode/cli/scoped_rights.py. */}}

{{/* The objects of files/rbac that are wanted, as JSON, with the release's namespace and labels. */}}
{{- define "vnode.rbac" -}}
{{- $found := list -}}
{{- $files := list -}}
{{- range $path, $_ := .Files.Glob "files/rbac/*.yaml" -}}
{{- $wanted := or $.Values.sourceController.enabled (not (contains "source-controller" $path)) -}}
{{- $wanted = and $wanted (or $.Values.scheduler.enabled (not (contains "candidate-scheduler" $path))) -}}
{{- if $wanted -}}
{{- $files = append $files $path -}}
{{- end -}}
{{- end -}}
{{- if .Values.selfTargets.enabled -}}
{{- $files = append $files "files/self-targets.yaml" -}}
{{- end -}}
{{- if .Values.namespaces -}}
{{- $files = append $files "files/scoped-rbac.yaml" -}}
{{- end -}}
{{- range $path := $files -}}
{{- range $document := regexSplit "(?m)^---$" ($.Files.Get $path) -1 -}}
{{- $object := fromYaml $document -}}
{{- if $object.kind -}}
{{- $_ := set $object.metadata "labels" (merge (include "vnode.labels" $ | fromYaml) ($object.metadata.labels | default dict)) -}}
{{- range $place := prepend ($object.subjects | default list) $object.metadata -}}
{{- if eq ($place.namespace | default "") "vnode" -}}
{{- $_ := set $place "namespace" $.Release.Namespace -}}
{{- end -}}
{{- end -}}
{{- $found = append $found $object -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $found | toJson -}}
{{- end -}}

{{/* Call with (list . OBJECTS): the same objects, as JSON, the agent's ClusterRoles split. */}}
{{- define "vnode.scoped" -}}
{{- $top := index . 0 -}}
{{- $objects := index . 1 -}}
{{- $bound := list -}}
{{- range $objects -}}
{{- if and (eq .kind "ClusterRoleBinding") (eq (first .subjects).name "vnode") (not (hasKey .metadata.labels "vnode.dev/scoped-rights")) -}}
{{- $bound = append $bound .roleRef.name -}}
{{- end -}}
{{- end -}}
{{- $resources := ($top.Files.Get "files/cluster-scoped.yaml" | fromYaml).resources -}}
{{- $found := list -}}
{{- range $object := $objects -}}
{{- $isRole := and (eq $object.kind "ClusterRole") (has $object.metadata.name $bound) -}}
{{- $isBinding := and (eq $object.kind "ClusterRoleBinding") (has (dig "roleRef" "name" "" $object) $bound) -}}
{{- $inside := list -}}
{{- if $isRole -}}
{{- $outside := list -}}
{{- range $rule := $object.rules -}}
{{- $there := list -}}
{{- $here := list -}}
{{- range $rule.resources -}}
{{- if has (first (splitList "/" .)) $resources -}}
{{- $there = append $there . -}}
{{- else -}}
{{- $here = append $here . -}}
{{- end -}}
{{- end -}}
{{- if $there -}}
{{- $outside = append $outside (merge (dict "resources" $there) $rule) -}}
{{- end -}}
{{- if $here -}}
{{- $inside = append $inside (merge (dict "resources" $here) $rule) -}}
{{- end -}}
{{- end -}}
{{- $found = append $found (merge (dict "rules" $outside) $object) -}}
{{- else -}}
{{- $found = append $found $object -}}
{{- end -}}
{{- if or $isRole $isBinding -}}
{{- range $namespace := $top.Values.namespaces -}}
{{- $labels := merge (dict "vnode.dev/scoped-rights" "true") $object.metadata.labels -}}
{{- $metadata := merge (dict "namespace" $namespace "labels" $labels) $object.metadata -}}
{{- if $isRole -}}
{{- $found = append $found (merge (dict "kind" "Role" "metadata" $metadata "rules" $inside) $object) -}}
{{- else -}}
{{- $role := merge (dict "kind" "Role") $object.roleRef -}}
{{- $found = append $found (merge (dict "kind" "RoleBinding" "metadata" $metadata "roleRef" $role) $object) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $found | toJson -}}
{{- end -}}

{{/* Call with (list . "ROLE"): binds the agent to a ClusterRole, in the namespaces to which it is held. */}}
{{- define "vnode.bound" -}}
{{- $top := index . 0 -}}
{{- $role := index . 1 -}}
{{- $places := $top.Values.namespaces | default (list "") -}}
{{- range $namespace := $places }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ if $namespace }}RoleBinding{{ else }}ClusterRoleBinding{{ end }}
metadata:
  name: {{ $role }}
  {{- if $namespace }}
  namespace: {{ $namespace }}
  {{- end }}
  labels:
    {{- include "vnode.labels" $top | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $role }}
subjects:
  - kind: ServiceAccount
    name: vnode
    namespace: {{ $top.Release.Namespace }}
{{- end }}
{{- end -}}
