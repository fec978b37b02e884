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

  validation {
    condition     = can(regex("^arn:[a-z-]+:s3:::[a-z0-9.-]+$", var.bucket_arn))
    error_message = "bucket_arn is the ARN of one bucket."
  }
}

variable "key_arn" {
  description = "ARN of the bucket's KMS key."
  type        = string

  validation {
    condition     = can(regex("^arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:key/[^*]+$", var.key_arn))
    error_message = "key_arn is the ARN of one KMS key."
  }
}

variable "folders" {
  description = "Folders of the bucket that may be read, and that may be read and written, without a slash at either end."
  type = object({
    read  = optional(list(string), [])
    write = optional(list(string), [])
  })

  validation {
    condition = alltrue([
      for folder in concat(var.folders.read, var.folders.write) : can(regex("^[^/*?][^*?]*[^/*?]$|^[^/*?]$", folder))
    ])
    error_message = "A folder's name has no wildcards and no slash at either end, for example inputs."
  }

  validation {
    condition     = length(var.folders.read) + length(var.folders.write) > 0
    error_message = "A role that may read nothing and write nothing is of no use."
  }
}
