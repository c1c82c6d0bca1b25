{{/* Names, labels and addresses. What programs agree on is fixed: see values.yaml. */}}

{{- define "vnode.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "vnode.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: vnode
{{- end -}}

{{/* Call with (list . "agent"). */}}
{{- define "vnode.selector" -}}
{{- $top := index . 0 -}}
app.kubernetes.io/name: {{ default $top.Chart.Name $top.Values.nameOverride }}
app.kubernetes.io/instance: {{ $top.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "vnode.image" -}}
{{- include "vnode.reference" (list . .Values.controllerManager.image .Chart.AppVersion) -}}
{{- end -}}

{{/* v1.36.3 of v1.36.3-eks-a1b2c3: what upstream calls the version of the API server. */}}
{{- define "vnode.serverVersion" -}}
{{- $server := semver .Capabilities.KubeVersion.Version -}}
{{- printf "v%d.%d.%d" $server.Major $server.Minor $server.Patch -}}
{{- end -}}

{{- define "vnode.schedulerImage" -}}
{{- include "vnode.reference" (list . .Values.scheduler.image (include "vnode.serverVersion" .)) -}}
{{- end -}}

{{/*
Whether the scheduler's version is one that preempts in the background, and may forget the pod for which
it did so for five minutes (decision 140). One that is named by its digest alone may be any.
*/}}
{{- define "vnode.schedulerForgets" -}}
{{- $image := .Values.scheduler.image -}}
{{- $tag := $image.tag | default (ternary "" (include "vnode.serverVersion" .) (not (empty $image.digest))) -}}
{{- if regexMatch "^v1[.]3[3-7]([.]|$)" $tag }}true{{ end -}}
{{- end -}}

{{/*
Call with (list . IMAGE "VERSION"). A registry is what stands before the first slash, if it has a dot
or a port, or is localhost. A digest says which image it is, so no tag is made up beside it.
*/}}
{{- define "vnode.reference" -}}
{{- $image := index . 1 -}}
{{- $repository := $image.repository -}}
{{- with dig "imageRegistry" "" ((index . 0).Values.global | default dict) -}}
{{- $parts := splitList "/" $repository -}}
{{- if and (gt (len $parts) 1) (regexMatch "[.:]|^localhost$" (first $parts)) -}}
{{- $repository = join "/" (rest $parts) -}}
{{- end -}}
{{- $repository = printf "%s/%s" (trimSuffix "/" .) $repository -}}
{{- end -}}
{{- if $image.digest -}}
{{ $repository }}{{ with $image.tag }}:{{ . }}{{ end }}@{{ $image.digest }}
{{- else -}}
{{ $repository }}:{{ $image.tag | default (index . 2) }}
{{- end -}}
{{- end -}}

{{/* imagePullSecrets of a pod: what is named by a list, globally, and as Admiralty's chart had it. */}}
{{- define "vnode.pullSecrets" -}}
{{- $names := list -}}
{{- range concat .Values.imagePullSecrets (dig "imagePullSecrets" list (.Values.global | default dict)) -}}
{{- if kindIs "string" . }}{{ $names = append $names . }}{{ else }}{{ $names = append $names .name }}{{ end -}}
{{- end -}}
{{- with .Values.imagePullSecretName -}}
{{- $names = append $names . -}}
{{- end -}}
{{- with uniq $names -}}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end -}}
{{- end -}}

{{/* The ports of the AgentConfiguration, as JSON. */}}
{{- define "vnode.ports" -}}
{{- $defaults := dict "webhook" 9443 "extender" 9444 "streams" 9448 "health" 8080 "kubelet" 10250 -}}
{{- $given := .Values.controllerManager.config.ports | default dict -}}
{{- $ports := merge (dict) $given $defaults -}}
{{- range $name, $port := $given }}{{ $_ := set $ports $name $port }}{{ end -}}  {{/* merge takes 0 for nothing */ -}}
{{- $ports | toJson -}}
{{- end -}}

{{/* Seconds, as the agent has them by default. */}}
{{- define "vnode.streamGracePeriod" -}}
{{- $config := .Values.controllerManager.config -}}
{{- if hasKey $config "streamGracePeriodSeconds" }}{{ $config.streamGracePeriodSeconds }}{{ else }}20{{ end -}}
{{- end -}}

{{/* The signer of the kubelet API's certificate, if it is asked for: by name, or as cert-manager has it. */}}
{{- define "vnode.kubeletSigner" -}}
{{- $values := .Values.controllerManager -}}
{{- $issuer := $values.certManager.issuerRef -}}
{{- if and $issuer.name (not $values.certManager.ipAddresses) -}}
{{- if eq ($issuer.kind | default "Issuer") "ClusterIssuer" -}}
clusterissuers.cert-manager.io/{{ $issuer.name }}
{{- else -}}
issuers.cert-manager.io/{{ .Release.Namespace }}.{{ $issuer.name }}
{{- end -}}
{{- else -}}
{{ $values.certificateSignerName }}
{{- end -}}
{{- end -}}

{{/* The Secret with the kubelet API's certificate, if cert-manager writes one. */}}
{{- define "vnode.kubeletSecret" -}}
{{- $certManager := .Values.controllerManager.certManager -}}
{{- if and $certManager.issuerRef.name $certManager.ipAddresses }}{{ include "vnode.fullname" . }}-kubelet-certificate{{ end -}}
{{- end -}}

{{- define "vnode.agentEnabled" -}}
{{- if not .Values.debug.controllerManager }}true{{ end -}}
{{- end -}}

{{- define "vnode.schedulerEnabled" -}}
{{- if and .Values.scheduler.enabled (not .Values.debug.candidateScheduler) }}true{{ end -}}
{{- end -}}
