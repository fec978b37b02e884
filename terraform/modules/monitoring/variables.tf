variable "chart_version" {
  description = "Version of the Helm chart kube-prometheus-stack. Helm does not upgrade CRDs: see terraform/README.md."
  type        = string
  default     = "88.5.3"

  validation {
    condition     = can(regex("^(8[7-9]|9[0-9]|[1-9][0-9]{2})\\.[0-9]+\\.[0-9]+$", var.chart_version))
    error_message = "chart_version is one version from 87 on; older charts gave Grafana a password that everybody knows."
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
  description = "Files of Grafana dashboards in JSON."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for path in var.dashboard_files : fileexists(path) && can(jsondecode(file(path)))])
    error_message = "dashboard_files names files that are there and hold JSON."
  }
}

variable "rule_files" {
  description = "Files of Prometheus alert rules in YAML."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for path in var.rule_files : fileexists(path) && can(yamldecode(file(path)).groups)])
    error_message = "rule_files names files that are there and hold `groups`, as Prometheus reads them."
  }
}
