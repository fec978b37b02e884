output "bucket_url" {
  description = "What `input.path` and `output` of a job begin with."
  value       = module.object_store.bucket_url
}

output "kubeconfig_command" {
  description = "Command that lets kubectl reach the cluster."
  value       = "aws eks update-kubeconfig --region ${var.region} --name ${module.cluster.name}"
}

output "namespace" {
  description = "Namespace of the workload."
  value       = var.namespace
}

output "service_accounts" {
  description = "Role of each service account that may use the bucket."
  value       = { for name, identity in module.identity : name => identity.role_arn }
}

output "node_selectors" {
  description = "nodeSelector of each pool's pods, by the pool's name."
  value       = module.node_pools.node_selectors
}

output "job_server" {
  description = "Address of Ray's job server inside the cluster, for `gristmill submit --address`; null without a RayService."
  value       = one(module.workload[*].job_server)
}

output "port_forward" {
  description = "Command that makes the job server http://127.0.0.1:8265 on this machine; null without a RayService."
  value       = one(module.workload[*].port_forward)
}

output "grafana" {
  description = "Command that makes Grafana http://127.0.0.1:3000 on this machine."
  value       = module.monitoring.grafana
}
