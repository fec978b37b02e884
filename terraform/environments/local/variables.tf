variable "kubeconfig" {
  description = "File that `kind create cluster` wrote its access to."
  type        = string
  default     = "~/.kube/config"
}

variable "context" {
  description = "Context of the kind cluster. Others are refused, so that this never lands on a real cluster."
  type        = string
  default     = "kind-gristmill"

  validation {
    condition     = startswith(var.context, "kind-")
    error_message = "context names a kind cluster: kind-NAME."
  }
}

variable "kuberay_version" {
  description = "Version of the KubeRay operator's chart."
  type        = string
  default     = "1.7.0"
}

variable "namespace" {
  description = "Namespace of the workload."
  type        = string
  default     = "gristmill"
}

variable "manifest_files" {
  description = "Rendered manifests to run; none: only the operator."
  type        = list(string)
  default     = []
}

variable "monitoring" {
  description = "Prometheus and Grafana. Manifests with a PodMonitor need it."
  type        = bool
  default     = true
}

variable "dashboard_files" {
  description = "Files of Grafana dashboards, besides those of this repository."
  type        = set(string)
  default     = []
}

variable "rule_files" {
  description = "Files of Prometheus alert rules, besides those of this repository."
  type        = set(string)
  default     = []
}
