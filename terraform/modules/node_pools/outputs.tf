output "node_selectors" {
  description = "What a pod's nodeSelector has to be to run on a pool, by the pool's name."
  value       = { for name in keys(var.pools) : name => { "gristmill.dev/pool" = name } }
}

output "storage_class" {
  description = "Storage class of encrypted disks, the default of the cluster. Known when the pools are there."
  value       = kubernetes_storage_class_v1.this.metadata[0].name
  depends_on  = [module.release]
}
