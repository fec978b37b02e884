variable "chart" {
  description = "The Helm chart kuberay-operator: its repository, its version, and the registry of its images. Helm does not upgrade CRDs: see terraform/README.md."
  type = object({
    repository = optional(string, "https://ray-project.github.io/kuberay-helm/")
    version    = optional(string, "1.7.0")
    registry   = optional(string, "quay.io")
  })
  default  = {}
  nullable = false

  validation {
    condition     = can(regex("^(https|oci)://[^@[:space:]]+$", var.chart.repository))
    error_message = "chart.repository begins with https:// or oci:// and holds no password."
  }

  validation {
    condition     = can(regex("^1\\.([6-9]|[1-9][0-9])\\.[0-9]+$", var.chart.version))
    error_message = "chart.version is 1.6.0 or later: RayCronJob came with 1.6."
  }

  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9.-]*(:[0-9]+)?(/[a-z0-9._-]+)*$", var.chart.registry))
    error_message = "chart.registry is a host, or one with a path, such as registry.example.com/mirror, without https://."
  }
}

variable "operator_namespace" {
  description = "Namespace of the operator."
  type        = string
  default     = "kuberay-system"
}

variable "namespaces" {
  description = "Namespaces that are made for Ray clusters. The operator sees no others."
  type        = set(string)

  validation {
    condition     = length(var.namespaces) > 0 && alltrue([for name in var.namespaces : can(regex("^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$", name))])
    error_message = "namespaces holds at least one name of lower-case letters, digits and hyphens."
  }

  validation {
    condition     = !contains(var.namespaces, var.operator_namespace)
    error_message = "Ray clusters do not run in the operator's namespace."
  }
}

variable "metrics_namespaces" {
  description = "Namespaces whose pods may read the metrics of Ray."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for name in var.metrics_namespaces : can(regex("^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$", name))])
    error_message = "metrics_namespaces holds names of namespaces."
  }
}

variable "client_namespaces" {
  description = "Namespaces whose pods may call the online endpoint."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for name in var.client_namespaces : can(regex("^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$", name))])
    error_message = "client_namespaces holds names of namespaces."
  }
}
