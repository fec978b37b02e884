module "kuberay" {
  source = "../../modules/kuberay"

  chart              = lookup(var.charts, "kuberay", null)
  namespaces         = [var.namespace]
  metrics_namespaces = ["monitoring"]
}

module "monitoring" {
  source = "../../modules/monitoring"
  count  = var.monitoring ? 1 : 0

  chart           = lookup(var.charts, "monitoring", null)
  namespace       = "monitoring"
  retention_days  = 7
  storage_gib     = 5
  dashboard_files = var.dashboard_files
  rule_files      = var.rule_files
}

# The folder /data of kind's node, which kind.yaml mounts from this machine. `Retain`: deleting the claim deletes no file.
resource "kubernetes_persistent_volume_v1" "data" {
  metadata {
    name = "documents"
  }

  spec {
    capacity                         = { storage = "10Gi" }
    access_modes                     = ["ReadWriteMany"]
    storage_class_name               = "manual"
    persistent_volume_reclaim_policy = "Retain"

    persistent_volume_source {
      host_path {
        path = "/data"
        type = "Directory"
      }
    }
  }
}

resource "kubernetes_persistent_volume_claim_v1" "data" {
  metadata {
    name      = "documents"
    namespace = module.kuberay.namespaces[var.namespace]
  }

  spec {
    access_modes       = ["ReadWriteMany"]
    storage_class_name = "manual"
    volume_name        = kubernetes_persistent_volume_v1.data.metadata[0].name

    resources {
      requests = { storage = "10Gi" }
    }
  }
}

module "workload" {
  source = "../../modules/workload"
  count  = length(var.manifest_files) > 0 ? 1 : 0

  namespace      = module.kuberay.namespaces[var.namespace]
  manifest_files = var.manifest_files
  claims         = [kubernetes_persistent_volume_claim_v1.data.metadata[0].name]
  pools          = []

  # A PodMonitor needs its definition.
  depends_on = [module.monitoring]
}
