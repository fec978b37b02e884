output "namespaces" {
  description = "The namespaces for Ray clusters. Known when they are there and the operator is running."
  value       = { for name, namespace in kubernetes_namespace_v1.watched : name => namespace.metadata[0].name }
  depends_on  = [helm_release.operator]
}
