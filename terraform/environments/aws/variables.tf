variable "name" {
  description = "Name of the cluster; begins the names of what is made for it."
  type        = string
  default     = "gristmill"
}

variable "region" {
  description = "AWS region, for example eu-central-1. It has to offer the GPU instances of `pools`."
  type        = string

  validation {
    condition     = can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]$", var.region))
    error_message = "region is a name such as eu-central-1."
  }
}

variable "tags" {
  description = "Further tags of everything that is made."
  type        = map(string)
  default     = {}
}

variable "bucket_name" {
  description = "Name of the bucket for inputs and outputs, unique among all accounts of AWS."
  type        = string
}

variable "keep_versions_days" {
  description = "Days for which an overwritten or deleted object can be brought back."
  type        = number
  default     = 30
}

variable "service_accounts" {
  description = "Service accounts of the workload by name, and the folders of the bucket that pods of each may read, and read and write. Manifests say which one they use: `identity.service_account`, or their `name`."
  type = map(object({
    read  = optional(list(string), [])
    write = optional(list(string), [])
  }))
  default = { gristmill = { read = ["inputs"], write = ["outputs"] } }
}

variable "models_folder" {
  description = "Folder of the bucket that holds a Hugging Face cache, which manifests mount by `models: {claim: models}`; null: no such claim."
  type        = string
  default     = "models"
}

variable "cidr" {
  description = "IPv4 range of the network, a /16."
  type        = string
  default     = "10.64.0.0/16"
}

variable "zones" {
  description = "2 to 4 availability zones of the region that offer the GPU instances of `pools`; add further ones at the end."
  type        = list(string)

  validation {
    condition     = alltrue([for zone in var.zones : startswith(zone, var.region)])
    error_message = "zones holds zones of the region."
  }
}

variable "nat_per_zone" {
  description = "A NAT gateway in each zone instead of one."
  type        = bool
  default     = false
}

variable "kubernetes_version" {
  description = "Version of Kubernetes."
  type        = string
  default     = "1.34"
}

variable "api_cidrs" {
  description = "IPv4 ranges that reach the Kubernetes API over the internet, the machine that runs Terraform among them unless it is inside the network."
  type        = set(string)
  default     = []
}

variable "admin_arns" {
  description = "IAM principals that administer the cluster, besides the one that makes it."
  type        = set(string)
  default     = []
}

variable "disk_gib" {
  description = "Disk of each node in GiB."
  type        = number
  default     = 200
}

variable "pools" {
  description = "Node pools, see modules/node_pools."
  type = map(object({
    families     = list(string)
    sizes        = optional(list(string), [])
    capacity     = list(string)
    cpus         = number
    gpus         = optional(number, 0)
    idle_minutes = optional(number, 10)
  }))
  default = {
    # Operator, Ray's heads, monitoring: what must not vanish.
    steady = { families = ["m7i", "m7a", "m6i"], capacity = ["on-demand"], cpus = 64 }
    # CPU workers of `placement: {kind: actors}`. Like the next one it may be spot, which a pod has to tolerate.
    cpu = { families = ["m7i", "m7a", "m6i", "c7i", "c7a"], capacity = ["spot", "on-demand"], cpus = 256 }
    # One L4 (24 GB) or L40S (48 GB) or several: an engine that dies with a spot node costs what was not saved.
    gpu = { families = ["g6", "g6e"], capacity = ["spot", "on-demand"], cpus = 256, gpus = 8 }
  }
}

variable "charts" {
  description = "Repositories, versions and registries of the charts of modules, by the module's name, where they are not to be its own: a mirror, without internet."
  type = map(object({
    repository = optional(string)
    version    = optional(string)
    registry   = optional(string)
  }))
  default = {}

  validation {
    condition     = length(setsubtract(keys(var.charts), ["kuberay", "monitoring", "models"])) == 0
    error_message = "charts are those of the modules kuberay, monitoring and models."
  }
}

variable "namespace" {
  description = "Namespace of the workload."
  type        = string
  default     = "gristmill"
}

variable "client_namespaces" {
  description = "Namespaces whose pods may call the online endpoint."
  type        = list(string)
  default     = []
}

variable "manifest_files" {
  description = "Rendered manifests to run; none: only the cluster."
  type        = list(string)
  default     = []
}

variable "alertmanager_secret" {
  description = "Secret in the namespace monitoring that says who is told of alerts; null: nobody is."
  type        = string
  default     = null
}

variable "dashboard_files" {
  description = "Files of Grafana dashboards, besides those of this repository."
  type        = set(string)
  default     = []
}

variable "rule_files" {
  description = "Files of Prometheus alert rules, besides those of this repository."
  type        = set(string)
  default     = []
}
