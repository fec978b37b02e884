# The rendered RayService, RayCronJob and what belongs to them. Terraform adds nothing to them and changes nothing in them.

locals {
  texts = [for path in var.manifest_files : file(path)]
  documents = flatten([for text in local.texts : [
    for part in split("\n---", "\n${text}") : yamldecode(part) if length(regexall("(?m)^[^#\\s-]", part)) > 0
  ]])
  services   = [for document in local.documents : document.metadata.name if document.kind == "RayService"]
  cron_jobs  = [for document in local.documents : document.metadata.name if document.kind == "RayCronJob"]
  objects    = [for document in local.documents : "${document.kind} ${document.metadata.name}"]
  namespaces = distinct([for document in local.documents : try(document.metadata.namespace, var.namespace)])

  # What must be there before pods start. A ConfigMap holds texts that are none of Kubernetes' business.
  pods     = join("", [for document in local.documents : yamlencode(document) if document.kind != "ConfigMap"])
  claims   = distinct(flatten(regexall("\"claimName\": \"([^\"]+)\"", local.pods)))
  pools    = distinct(flatten(regexall("\"gristmill.dev/pool\": \"([^\"]+)\"", local.pods)))
  accounts = distinct(flatten(regexall("\"serviceAccountName\": \"([^\"]+)\"", local.pods)))
}

module "release" {
  source = "../manifests"

  name      = var.name
  namespace = var.namespace
  manifests = local.texts
}
