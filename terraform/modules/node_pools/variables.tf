variable "node_role_name" {
  description = "IAM role of the nodes."
  type        = string
}

variable "subnet_ids" {
  description = "Subnets in which nodes are started."
  type        = list(string)

  validation {
    condition     = length(var.subnet_ids) > 0
    error_message = "Nodes need a subnet."
  }
}

variable "security_group_id" {
  description = "Security group of the nodes."
  type        = string
}

variable "disk_gib" {
  description = "Disk of each node in GiB: images (about 20 GiB with CUDA), Ray's spill, a model that is downloaded."
  type        = number
  default     = 200

  validation {
    condition     = var.disk_gib >= 80 && var.disk_gib <= 16000
    error_message = "disk_gib lies between 80 and 16000."
  }
}

variable "pools" {
  description = <<-EOT
    Node pools by name. `families` and `sizes` of EC2 instances (no sizes: any); `capacity`: "spot", "on-demand" or both
    (spot is taken first); `cpus` and `gpus` are the most that a pool may hold at a time, and so bound what it may cost;
    a pool with GPUs is tainted nvidia.com/gpu, one that may be spot gristmill.dev/spot; `idle_minutes`: an empty node waits
    so long for another pod.
  EOT
  type = map(object({
    families     = list(string)
    sizes        = optional(list(string), [])
    capacity     = list(string)
    cpus         = number
    gpus         = optional(number, 0)
    idle_minutes = optional(number, 10)
  }))

  validation {
    condition     = alltrue([for name in keys(var.pools) : can(regex("^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$", name))])
    error_message = "A pool's name has at most 32 lower-case letters, digits and hyphens."
  }

  validation {
    condition     = length(setintersection(keys(var.pools), ["system", "general-purpose"])) == 0
    error_message = "system and general-purpose are the names of Auto Mode's own pools."
  }

  validation {
    condition     = alltrue([for pool in values(var.pools) : length(pool.families) > 0])
    error_message = "A pool names the instance families that it may start."
  }

  validation {
    condition = alltrue([
      for pool in values(var.pools) :
      length(pool.capacity) > 0 && length(setsubtract(pool.capacity, ["spot", "on-demand"])) == 0
    ])
    error_message = "capacity holds \"spot\", \"on-demand\" or both."
  }

  validation {
    condition     = alltrue([for pool in values(var.pools) : pool.cpus > 0 && pool.gpus >= 0 && pool.idle_minutes >= 1])
    error_message = "cpus is above 0, gpus is 0 or more, idle_minutes 1 or more."
  }

  validation {
    condition     = anytrue([for pool in values(var.pools) : pool.gpus == 0 && !contains(pool.capacity, "spot")])
    error_message = "One pool has neither GPUs nor spot nodes: the operator, Ray's heads and monitoring run there."
  }
}
