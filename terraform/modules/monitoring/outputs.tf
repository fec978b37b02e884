output "namespace" {
  description = "Namespace of Prometheus and Grafana."
  value       = kubernetes_namespace_v1.this.metadata[0].name
}

output "grafana" {
  description = "Command that makes Grafana http://127.0.0.1:3000 on the machine on which it runs; the user is admin, the password in the secret monitoring-grafana."
  value       = "kubectl --namespace ${var.namespace} port-forward service/monitoring-grafana 3000:80"
}
