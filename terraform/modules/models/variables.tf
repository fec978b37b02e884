variable "chart" {
  description = "The Helm chart aws-mountpoint-s3-csi-driver: its repository, its version, and the registry of its images."
  type = object({
    repository = optional(string, "https://awslabs.github.io/mountpoint-s3-csi-driver")
    version    = optional(string, "2.7.0")
    registry   = optional(string, "public.ecr.aws")
  })
  default  = {}
  nullable = false

  validation {
    condition     = can(regex("^(https|oci)://[^@[:space:]]+$", var.chart.repository))
    error_message = "chart.repository begins with https:// or oci:// and holds no password."
  }

  validation {
    condition     = can(regex("^([2-9]|[1-9][0-9])\\.[0-9]+\\.[0-9]+$", var.chart.version))
    error_message = "chart.version is one version from 2 on: older drivers cannot take their role from EKS Pod Identity."
  }

  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9.-]*(:[0-9]+)?(/[a-z0-9._-]+)*$", var.chart.registry))
    error_message = "chart.registry is a host, or one with a path, such as registry.example.com/mirror, without https://."
  }
}

variable "namespace" {
  description = "Namespace of the claim."
  type        = string
}

variable "claim" {
  description = "Name of the claim."
  type        = string
  default     = "models"

  validation {
    condition     = can(regex("^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$", var.claim))
    error_message = "claim is a name of lower-case letters, digits and hyphens."
  }
}

variable "role_name" {
  description = "Begins the name of the driver's role."
  type        = string
}

variable "cluster_name" {
  description = "Name of the EKS cluster."
  type        = string
}

variable "cluster_arn" {
  description = "ARN of the EKS cluster."
  type        = string
}

variable "bucket_arn" {
  description = "ARN of the bucket that holds the models."
  type        = string

  validation {
    condition     = can(regex("^arn:[a-z-]+:s3:::[a-z0-9.-]+$", var.bucket_arn))
    error_message = "bucket_arn is the ARN of one bucket."
  }
}

variable "key_arn" {
  description = "ARN of the bucket's KMS key."
  type        = string
}

variable "folder" {
  description = "Folder of the bucket that holds a Hugging Face cache, as HF_HOME is laid out, without a slash at either end."
  type        = string

  validation {
    condition     = can(regex("^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$", var.folder))
    error_message = "folder is a folder's name without a slash at either end, for example models."
  }
}

variable "region" {
  description = "Region of the bucket."
  type        = string
}
