variable "name" {
  description = "Begins the names of all that is made here."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,19}$", var.name))
    error_message = "name has 2 to 20 lower-case letters, digits and hyphens, and begins with a letter."
  }
}

variable "cidr" {
  description = "IPv4 range of the network. Every pod takes an address of it."
  type        = string
  default     = "10.64.0.0/16"

  validation {
    condition     = can(cidrhost(var.cidr, 0)) && can(regex("/16$", var.cidr))
    error_message = "cidr is an IPv4 range of the size /16, for example 10.64.0.0/16."
  }
}

variable "zones" {
  description = "Names of 2 to 4 availability zones. Named, not looked up: one that fails or opens would move the subnets of all. More of them find more spot GPUs; add at the end."
  type        = list(string)

  validation {
    condition     = contains([2, 3, 4], length(var.zones)) && length(distinct(var.zones)) == length(var.zones)
    error_message = "zones holds 2, 3 or 4 different zones."
  }

  validation {
    condition     = alltrue([for zone in var.zones : can(regex("^[a-z]{2}(-[a-z]+)+-[0-9][a-z]$", zone))])
    error_message = "zones holds names such as eu-central-1a."
  }
}

variable "nat_per_zone" {
  description = "A NAT gateway in each zone. Without it the nodes of all zones lose the internet with the first zone."
  type        = bool
  default     = false
}
