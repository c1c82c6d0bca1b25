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
{{- if and (eq $object.kind "ServiceAccount") (eq $object.metadata.name "vnode") -}}
{{- with $.Values.controllerManager.serviceAccount.annotations -}}
{{- $_ := set $object.metadata "annotations" . -}}
{{- end -}}
{{- end -}}
{{- $found = append $found $object -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $optional := dict "vnode-issuing" .Values.issuing.enabled "vnode-decisions" .Values.decisions.follow "vnode-published-decisions" .Values.decisions.publish "vnode-target-sets" .Values.targetSets.enabled "vnode-managed-clusters" .Values.managedClusterTaints.enabled "vnode-kueue" .Values.kueue.enabled "vnode-multikueue" .Values.kueue.multiKueue "vnode-scores" .Values.scores.read "vnode-published-scores" .Values.scores.publish -}}
{{- range $role, $wanted := $optional -}}
{{- if $wanted -}}
{{- $found = append $found (include "vnode.binding" (list $ $role) | fromYaml) -}}
{{- end -}}
{{- end -}}
{{- $found | toJson -}}
{{- end -}}

{{/* Call with (list . "ROLE"): binds the agent to a ClusterRole that is bound to nobody by default. */}}
{{- define "vnode.binding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ index . 1 }}
  labels:
    {{- include "vnode.labels" (index . 0) | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ index . 1 }}
subjects:
  - kind: ServiceAccount
    name: vnode
    namespace: {{ (index . 0).Release.Namespace }}
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
{{- $isViewer := and (eq $object.kind "ClusterRole") (eq $object.metadata.name "admiralty-cluster-summary-viewer") -}}
{{- $isBinding := and (eq $object.kind "ClusterRoleBinding") (has (dig "roleRef" "name" "" $object) $bound) -}}
{{- $inside := list -}}
{{- if or $isRole $isViewer -}}
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
{{- $found = append $found (set (deepCopy $object) "rules" $outside) -}}
{{- else -}}
{{- $found = append $found $object -}}
{{- end -}}
{{- if or $isRole $isBinding -}}
{{- range $namespace := $top.Values.namespaces -}}
{{- $labels := merge (dict "vnode.dev/scoped-rights" "true") $object.metadata.labels -}}
{{- $metadata := merge (dict "namespace" $namespace "labels" $labels) $object.metadata -}}
{{- if $isRole -}}
{{- $found = append $found (set (merge (dict "kind" "Role" "metadata" $metadata) $object) "rules" $inside) -}}
{{- else -}}
{{- $role := merge (dict "kind" "Role") $object.roleRef -}}
{{- $found = append $found (merge (dict "kind" "RoleBinding" "metadata" $metadata "roleRef" $role) $object) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $found | toJson -}}
{{- end -}}
