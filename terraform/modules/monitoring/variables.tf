variable "chart" {
  description = "The Helm chart kube-prometheus-stack: its repository, its version, and the registry of its images. No registry: each image comes from its own. Helm does not upgrade CRDs: see terraform/README.md."
  type = object({
    repository = optional(string, "https://prometheus-community.github.io/helm-charts")
    version    = optional(string, "88.5.3")
    registry   = optional(string)
  })
  default  = {}
  nullable = false

  validation {
    condition     = can(regex("^(https|oci)://[^@[:space:]]+$", var.chart.repository))
    error_message = "chart.repository begins with https:// or oci:// and holds no password."
  }

  validation {
    condition     = can(regex("^(8[7-9]|9[0-9]|[1-9][0-9]{2})\\.[0-9]+\\.[0-9]+$", var.chart.version))
    error_message = "chart.version is one version from 87 on; older charts gave Grafana a password that everybody knows."
  }

  validation {
    condition     = var.chart.registry == null || can(regex("^[a-z0-9][a-z0-9.-]*(:[0-9]+)?(/[a-z0-9._-]+)*$", var.chart.registry))
    error_message = "chart.registry is a host, or one with a path, such as registry.example.com/mirror, without https://."
  }
}

variable "namespace" {
  description = "Namespace that is made for monitoring."
  type        = string
  default     = "monitoring"
}

variable "retention_days" {
  description = "Days for which metrics are kept."
  type        = number
  default     = 30

  validation {
    condition     = var.retention_days >= 1 && var.retention_days <= 730
    error_message = "retention_days lies between 1 and 730."
  }
}

variable "storage_gib" {
  description = "Disk of Prometheus in GiB."
  type        = number
  default     = 50

  validation {
    condition     = var.storage_gib >= 5
    error_message = "Prometheus needs 5 GiB at least."
  }
}

variable "storage_class" {
  description = "Storage class of that disk; null: the cluster's default."
  type        = string
  default     = null
}

variable "alertmanager_secret" {
  description = "Secret in the namespace whose key alertmanager.yaml says who is told of alerts; null: nobody is."
  type        = string
  default     = null
}

variable "dashboard_files" {
  description = "Files of Grafana dashboards in JSON, besides those of this repository."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for path in var.dashboard_files : fileexists(path) && can(jsondecode(file(path)))])
    error_message = "dashboard_files names files that are there and hold JSON."
  }
}

variable "rule_files" {
  description = "Files of Prometheus alert rules in YAML, besides those of this repository."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for path in var.rule_files : fileexists(path) && can(yamldecode(file(path)).groups)])
    error_message = "rule_files names files that are there and hold `groups`, as Prometheus reads them."
  }
}
