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
