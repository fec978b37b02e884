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

  precondition {
    condition     = length(distinct(local.objects)) == length(local.objects)
    error_message = "The manifests hold an object twice: ${join(", ", sort(local.objects))}."
  }
}

# Warnings and no errors: what these pods need may have been made elsewhere, but then somebody should know.

check "claims" {
  assert {
    condition     = var.claims == null || length(setsubtract(local.claims, coalesce(var.claims, []))) == 0
    error_message = "Manifests mount the claims ${join(", ", local.claims)}; those known are ${join(", ", coalesce(var.claims, []))}. Pods of a claim that is not there stay Pending."
  }
}

check "pools" {
  assert {
    condition     = var.pools == null || length(setsubtract(local.pools, coalesce(var.pools, []))) == 0
    error_message = "Manifests select the pools ${join(", ", local.pools)}; those known are ${join(", ", coalesce(var.pools, []))}. Pods of a pool that is not there stay Pending."
  }
}

check "service_accounts" {
  assert {
    condition     = var.service_accounts == null || length(setsubtract(local.accounts, coalesce(var.service_accounts, []))) == 0
    error_message = "Pods of the manifests run as ${join(", ", local.accounts)}; the bucket opens to ${join(", ", coalesce(var.service_accounts, []))} only."
  }
}
