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

variable "zone_count" {
  description = "Availability zones to use. More of them find more spot GPUs."
  type        = number
  default     = 3

  validation {
    condition     = contains([2, 3, 4], var.zone_count)
    error_message = "zone_count is 2, 3 or 4."
  }
}

variable "nat_per_zone" {
  description = "A NAT gateway in each zone. Without it the nodes of all zones lose the internet with the first zone."
  type        = bool
  default     = false
}
