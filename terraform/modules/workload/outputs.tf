output "cron_jobs" {
  description = "Names of the RayCronJobs."
  value       = local.cron_jobs
}

output "job_server" {
  description = "Address of Ray's job server inside the cluster, for `gristmill submit --address`; null without one RayService."
  value       = length(local.services) == 1 ? "http://${local.services[0]}-head-svc.${var.namespace}.svc:8265" : null
}

output "port_forward" {
  description = "Command that makes the job server http://127.0.0.1:8265 on the machine on which it runs; null without one RayService."
  value       = length(local.services) == 1 ? "kubectl --namespace ${var.namespace} port-forward service/${local.services[0]}-head-svc 8265:8265" : null
}
