# Outputs are evaluated at plan time, so a mistake in a file is told before anything is changed.

output "documents" {
  description = "How many Kubernetes objects the files hold."
  value       = length(local.documents)

  precondition {
    condition     = alltrue([for namespace in local.namespaces : namespace == var.namespace])
    error_message = "The manifests name the namespaces ${join(", ", local.namespaces)}; they were to go to ${var.namespace}."
  }

  precondition {
    condition     = alltrue([for document in local.documents : document.kind != "Secret"])
    error_message = "The manifests hold a Secret, which would be stored in Terraform's state: make it with kubectl."
  }
}
