variable "name" {
  description = "Name of the Helm release."
  type        = string
  default     = "gristmill"
}

variable "namespace" {
  description = "Namespace of the workload."
  type        = string
}

variable "manifest_files" {
  description = "Files of rendered manifests."
  type        = list(string)

  validation {
    condition     = length(var.manifest_files) > 0 && alltrue([for path in var.manifest_files : fileexists(path)])
    error_message = "manifest_files names files that are there: render the manifests first."
  }
}

variable "claims" {
  description = "Claims of the namespace that are known: a warning names those that manifests mount besides. null: any."
  type        = list(string)
  default     = null
}

variable "pools" {
  description = "Node pools that are known: a warning names those that manifests select besides. null: any."
  type        = list(string)
  default     = null
}

variable "service_accounts" {
  description = "Service accounts that may use the bucket: a warning names those of manifests that may not. null: any."
  type        = list(string)
  default     = null
}
