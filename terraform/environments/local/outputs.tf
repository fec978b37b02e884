output "bucket_url" {
  description = "What `input.path` and `output` of a job begin with: the claim, as the manifests mount it."
  value       = "/data"
}

output "data_claim" {
  description = "Claim of the folder `data` beside kind.yaml: `volumes: [{claim: documents, path: /data}]` in the values of a manifest."
  value       = kubernetes_persistent_volume_claim_v1.data.metadata[0].name
}

output "namespace" {
  description = "Namespace of the workload."
  value       = var.namespace
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
  description = "Command that makes Grafana http://127.0.0.1:3000 on this machine; null without monitoring."
  value       = one(module.monitoring[*].grafana)
}
