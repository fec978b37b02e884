module "object_store" {
  source = "../../modules/object_store"

  bucket_name        = var.bucket_name
  keep_versions_days = var.keep_versions_days
}

module "network" {
  source = "../../modules/network"

  name         = var.name
  cidr         = var.cidr
  zones        = var.zones
  nat_per_zone = var.nat_per_zone
}

module "cluster" {
  source = "../../modules/cluster"

  name               = var.name
  kubernetes_version = var.kubernetes_version
  subnet_ids         = module.network.private_subnet_ids
  api_cidrs          = var.api_cidrs
  admin_arns         = var.admin_arns
}

module "node_pools" {
  source = "../../modules/node_pools"

  node_role_name    = module.cluster.node_role_name
  subnet_ids        = module.network.private_subnet_ids
  security_group_id = module.cluster.security_group_id
  disk_gib          = var.disk_gib
  pools             = var.pools
}

# A role for each service account: jobs of different people do not read each other's documents. A service account that
# is not named has no right to the bucket at all.
module "identity" {
  source   = "../../modules/identity"
  for_each = var.service_accounts

  name            = trimsuffix(substr("${var.name}-${each.key}", 0, 37), "-")
  cluster_name    = module.cluster.name
  cluster_arn     = module.cluster.arn
  namespace       = var.namespace
  service_account = each.key
  bucket_arn      = module.object_store.bucket_arn
  key_arn         = module.object_store.key_arn
  folders         = each.value
}

module "kuberay" {
  source = "../../modules/kuberay"

  chart              = lookup(var.charts, "kuberay", null)
  namespaces         = [var.namespace]
  metrics_namespaces = ["monitoring"]
  client_namespaces  = var.client_namespaces

  # The operator needs a node.
  depends_on = [module.node_pools]
}

module "models" {
  source = "../../modules/models"
  count  = var.models_folder == null ? 0 : 1

  chart        = lookup(var.charts, "models", null)
  namespace    = module.kuberay.namespaces[var.namespace]
  folder       = var.models_folder
  region       = var.region
  role_name    = "${var.name}-models"
  cluster_name = module.cluster.name
  cluster_arn  = module.cluster.arn
  bucket_arn   = module.object_store.bucket_arn
  key_arn      = module.object_store.key_arn
}

module "monitoring" {
  source = "../../modules/monitoring"

  chart               = lookup(var.charts, "monitoring", null)
  namespace           = "monitoring"
  storage_class       = module.node_pools.storage_class
  alertmanager_secret = var.alertmanager_secret
  dashboard_files     = var.dashboard_files
  rule_files          = var.rule_files
}

module "workload" {
  source = "../../modules/workload"
  count  = length(var.manifest_files) > 0 ? 1 : 0

  namespace      = module.kuberay.namespaces[var.namespace]
  manifest_files = var.manifest_files
  claims         = module.models[*].claim
  pools          = keys(var.pools)

  service_accounts = keys(var.service_accounts)

  # Pods that start before their identity get none; a PodMonitor needs its definition.
  depends_on = [module.identity, module.monitoring]
}
