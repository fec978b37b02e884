variable "bucket_name" {
  description = "Name of the bucket, unique among all accounts of AWS."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$", var.bucket_name))
    error_message = "A bucket name has 3 to 63 lower-case letters, digits and hyphens, and begins and ends with a letter or digit."
  }
}

variable "keep_versions_days" {
  description = "Days for which an overwritten or deleted object can be brought back."
  type        = number
  default     = 30

  validation {
    condition     = var.keep_versions_days >= 1 && var.keep_versions_days <= 3650 && floor(var.keep_versions_days) == var.keep_versions_days
    error_message = "keep_versions_days is a whole number of days from 1 to 3650."
  }
}
