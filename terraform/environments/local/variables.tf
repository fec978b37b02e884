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

variable "charts" {
  description = "Repositories, versions and registries of the charts of modules, by the module's name, where they are not to be its own: a mirror, without internet."
  type = map(object({
    repository = optional(string)
    version    = optional(string)
    registry   = optional(string)
  }))
  default = {}

  validation {
    condition     = length(setsubtract(keys(var.charts), ["kuberay", "monitoring"])) == 0
    error_message = "charts are those of the modules kuberay and monitoring."
  }
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
