variable "name" {
  description = "Name of the release."
  type        = string

  validation {
    condition     = can(regex("^[a-z]([a-z0-9-]{0,51}[a-z0-9])?$", var.name))
    error_message = "A release's name has at most 53 lower-case letters, digits and hyphens."
  }
}

variable "namespace" {
  description = "Namespace of the release, and of the manifests that name none."
  type        = string
}

variable "manifests" {
  description = "YAML texts, each one or several Kubernetes objects."
  type        = list(string)

  validation {
    condition     = length(var.manifests) > 0
    error_message = "A release without manifests is of no use."
  }
}
