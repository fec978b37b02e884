variable "name" {
  description = "Begins the name of the role."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,36}$", var.name))
    error_message = "name has 2 to 37 lower-case letters, digits and hyphens, and begins with a letter."
  }
}

variable "cluster_name" {
  description = "Name of the EKS cluster."
  type        = string
}

variable "cluster_arn" {
  description = "ARN of the EKS cluster. Pods of others cannot take the role."
  type        = string

  validation {
    condition     = can(regex("^arn:[a-z-]+:eks:[a-z0-9-]+:[0-9]{12}:cluster/[^*]+$", var.cluster_arn))
    error_message = "cluster_arn is the ARN of one EKS cluster."
  }
}

variable "namespace" {
  description = "Namespace of the service account."
  type        = string
}

variable "service_account" {
  description = "The service account whose pods take the role."
  type        = string

  validation {
    condition     = !contains(["", "default", "*"], var.service_account)
    error_message = "service_account is a name of its own: every pod without one runs as `default`."
  }
}

variable "bucket_arn" {
  description = "ARN of the bucket."
  type        = string
}

variable "key_arn" {
  description = "ARN of the bucket's KMS key."
  type        = string
}

variable "read_prefixes" {
  description = "Folders of the bucket that may be read, without a slash at either end."
  type        = list(string)

  validation {
    condition     = alltrue([for prefix in var.read_prefixes : can(regex("^[^/*?][^*?]*[^/*?]$|^[^/*?]$", prefix))])
    error_message = "A prefix is a folder's name without wildcards and without a slash at either end, for example inputs."
  }
}

variable "write_prefixes" {
  description = "Folders of the bucket that may be read and written, without a slash at either end."
  type        = list(string)

  validation {
    condition     = alltrue([for prefix in var.write_prefixes : can(regex("^[^/*?][^*?]*[^/*?]$|^[^/*?]$", prefix))])
    error_message = "A prefix is a folder's name without wildcards and without a slash at either end, for example outputs."
  }

  validation {
    condition     = length(var.read_prefixes) + length(var.write_prefixes) > 0
    error_message = "A role that may read nothing and write nothing is of no use."
  }
}
