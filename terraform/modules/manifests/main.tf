# Custom resources as a Helm release. The provider's own resource for them asks the cluster for their definitions at plan
# time, when neither the cluster nor the definitions are there yet; a release does so when it is applied.

resource "helm_release" "this" {
  name      = var.name
  namespace = var.namespace
  chart     = "${path.module}/chart"
  values    = [yamlencode({ manifests = var.manifests })]

  atomic          = true
  cleanup_on_fail = true
  max_history     = 10
  timeout         = 600
}
