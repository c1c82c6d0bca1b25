{{/* What the schema of the values cannot say: each failure names the cure. */}}
{{- define "vnode.check" -}}
{{- if contains "admiralty-" .Values.controllerManager.image.repository -}}
{{- fail "controllerManager.image.repository is Admiralty's image: leave it out, or name vnode's" -}}
{{- end -}}
{{- if contains "admiralty-" .Values.scheduler.image.repository -}}
{{- fail "scheduler.image.repository is Admiralty's image: leave it out, or name an upstream kube-scheduler" -}}
{{- end -}}
{{- range $name, $image := dict "controllerManager" .Values.controllerManager.image "scheduler" .Values.scheduler.image -}}
{{- if and $image.digest (contains "@" ($image.tag | default "")) -}}
{{- fail (printf "%s.image names a digest in its tag and another beside it: leave out one of both" $name) -}}
{{- end -}}
{{- end -}}
{{- $ports := include "vnode.ports" . | fromJson -}}
{{- $used := dict -}}
{{- range $name, $port := $ports -}}
{{- $other := get $used (toString $port) -}}
{{- if and (ne (int $port) 0) $other -}}
{{- fail (printf "controllerManager.config.ports.%s and %s are both %v: give each its own" $other $name $port) -}}
{{- end -}}
{{- $_ := set $used (toString $port) $name -}}
{{- end -}}
{{- if and (hasKey .Values.controllerManager.config "sourceController") (not .Values.sourceController.enabled) -}}
{{- fail "sourceController.enabled takes the agent's rights for Sources: leave out controllerManager.config.sourceController, which it sets" -}}
{{- end -}}
{{- $budget := dig "minAvailable" 0 (.Values.podDisruptionBudget | default dict) -}}
{{- $protected := dict -}}
{{- if include "vnode.agentEnabled" . }}{{ $_ := set $protected "controllerManager" .Values.controllerManager.replicas }}{{ end -}}
{{- if include "vnode.schedulerEnabled" . }}{{ $_ := set $protected "scheduler" .Values.scheduler.replicas }}{{ end -}}
{{- range $name, $replicas := $protected -}}
{{- if and (gt (int $replicas) 1) (or (eq (toString $budget) "100%") (and (not (contains "%" (toString $budget))) (ge (int $budget) (int $replicas)))) -}}
{{- fail (printf "podDisruptionBudget.minAvailable %v lets none of the %v replicas of %s be evicted, so that no node of theirs can be drained: make it less, or have more replicas" $budget $replicas $name) -}}
{{- end -}}
{{- end -}}
{{- range $way := list "ingress" "httpRoute" -}}
{{- if and (index $.Values.dashboard $way).enabled (not $ports.dashboard) -}}
{{- fail (printf "dashboard.%s leads to the dashboard, which agents do not serve: set controllerManager.config.ports.dashboard, e.g. to 9445" $way) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.dashboard.httpRoute.enabled (not .Values.dashboard.httpRoute.parentRefs) -}}
{{- fail "dashboard.httpRoute belongs to no Gateway: name one in dashboard.httpRoute.parentRefs" -}}
{{- end -}}
{{- if and .Values.controllerManager.hostNetwork (eq (int $ports.kubelet) 10250) -}}
{{- fail "with controllerManager.hostNetwork the node's kubelet has port 10250: set controllerManager.config.ports.kubelet, e.g. to 11250" -}}
{{- end -}}
{{- $level := dig "metadata" "labels" "pod-security.kubernetes.io/enforce" "" (lookup "v1" "Namespace" "" .Release.Namespace) -}}
{{- if and .Values.controllerManager.hostNetwork (has $level (list "restricted" "baseline")) -}}
{{- fail (printf "with controllerManager.hostNetwork agents do not pass the Pod Security level %s of their namespace: kubectl label --overwrite namespace %s pod-security.kubernetes.io/enforce=privileged" $level .Release.Namespace) -}}
{{- end -}}
{{- $volumes := list "config" "tmp" "kubelet-certificate" -}}
{{- range .Values.controllerManager.extraVolumes -}}
{{- if has .name $volumes -}}
{{- fail (printf "controllerManager.extraVolumes has %s, which the chart or an earlier entry has: give it another name" .name) -}}
{{- end -}}
{{- $volumes = append $volumes .name -}}
{{- end -}}
{{- $mounts := .Values.controllerManager.extraVolumeMounts -}}
{{- range .Values.controllerManager.initContainers -}}
{{- $mounts = concat $mounts (.volumeMounts | default list) -}}
{{- end -}}
{{- range $mounts -}}
{{- if not (has .name $volumes) -}}
{{- fail (printf "controllerManager mounts the volume %s, which is not there: add it to controllerManager.extraVolumes" .name) -}}
{{- end -}}
{{- end -}}
{{- $certManager := .Values.controllerManager.certManager -}}
{{- if and (or $certManager.ipAddresses $certManager.approve) (not $certManager.issuerRef.name) -}}
{{- fail "controllerManager.certManager names no issuer: set controllerManager.certManager.issuerRef.name" -}}
{{- end -}}
{{- if and $certManager.ipAddresses $certManager.approve -}}
{{- fail "controllerManager.certManager.approve is for requests of agents, and with ipAddresses they make none: leave out one of both" -}}
{{- end -}}
{{- if and $certManager.issuerRef.name (or .Values.controllerManager.certificateSignerName (hasKey .Values.controllerManager.config "kubeletCertificate")) -}}
{{- fail "the kubelet API has one certificate: leave out controllerManager.certManager, or certificateSignerName and config.kubeletCertificate" -}}
{{- end -}}
{{- if and .Values.debug.controllerManager (not .Values.webhook.url) -}}
{{- fail "debug.controllerManager leaves the agent out: set webhook.url to where yours runs, https://HOST:9443" -}}
{{- end -}}
{{- if hasKey .Values.controllerManager.config "namespaces" -}}
{{- fail "controllerManager.config.namespaces would not change the agent's rights: set namespaces" -}}
{{- end -}}
{{- if has .Release.Namespace .Values.namespaces -}}
{{- fail (printf "namespaces has %s, the agent's own, whose pods never go to targets: leave it out" .Release.Namespace) -}}
{{- end -}}
{{- if and .Values.namespaces .Values.targetSets.enabled -}}
{{- fail "targetSets need rights in all namespaces: leave out targetSets.enabled, or namespaces" -}}
{{- end -}}
{{- range $field := list "apiVersion" "kind" -}}
{{- if hasKey $.Values.controllerManager.config $field -}}
{{- fail (printf "controllerManager.config.%s is the chart's: leave it out" $field) -}}
{{- end -}}
{{- end -}}
{{- end -}}
