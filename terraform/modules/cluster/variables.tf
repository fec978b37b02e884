variable "name" {
  description = "Name of the cluster; begins the names of its roles."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,19}$", var.name))
    error_message = "name has 2 to 20 lower-case letters, digits and hyphens, and begins with a letter."
  }
}

variable "kubernetes_version" {
  description = "Version of Kubernetes. Raise it one minor version at a time."
  type        = string
  default     = "1.34"

  validation {
    condition     = can(regex("^1\\.(3[2-9]|[4-9][0-9])$", var.kubernetes_version))
    error_message = "kubernetes_version is a minor version from 1.32 on, for example 1.34."
  }
}

variable "subnet_ids" {
  description = "Private subnets of the cluster's endpoints, in two zones or more."
  type        = list(string)

  validation {
    condition     = length(var.subnet_ids) >= 2
    error_message = "EKS needs subnets in two zones at least."
  }
}

variable "api_cidrs" {
  description = "IPv4 ranges from which the Kubernetes API can be reached over the internet; none: only from inside the network."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for range in var.api_cidrs : can(cidrhost(range, 0)) && try(tonumber(split("/", range)[1]), 0) >= 8])
    error_message = "api_cidrs holds IPv4 ranges of the size /8 or smaller, such as 203.0.113.7/32. The whole internet is refused."
  }
}

variable "admin_arns" {
  description = "IAM principals that administer the cluster, besides the one that makes it."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for arn in var.admin_arns : can(regex("^arn:[a-z-]+:iam::[0-9]{12}:(role|user)/[^*]+$", arn))])
    error_message = "admin_arns holds ARNs of IAM roles or users, without wildcards."
  }
}
