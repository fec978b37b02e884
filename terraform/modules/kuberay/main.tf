# The KubeRay operator, and the namespaces that it may act in. It gets no rights outside of them.

resource "kubernetes_namespace_v1" "operator" {
  metadata {
    name   = var.operator_namespace
    labels = { "pod-security.kubernetes.io/enforce" = "restricted" }
  }
}

resource "kubernetes_namespace_v1" "watched" {
  for_each = var.namespaces

  metadata {
    name = each.value
    # `restricted` is what the rendered manifests keep; what others put here gets at least a warning.
    labels = {
      "pod-security.kubernetes.io/enforce" = "baseline"
      "pod-security.kubernetes.io/warn"    = "restricted"
    }
  }
}

resource "helm_release" "operator" {
  name       = "kuberay-operator"
  namespace  = kubernetes_namespace_v1.operator.metadata[0].name
  repository = var.chart.repository
  chart      = "kuberay-operator"
  version    = var.chart.version

  atomic          = true
  cleanup_on_fail = true
  timeout         = 600

  values = [yamlencode({
    image = { repository = "${var.chart.registry}/kuberay/operator" }
    # Roles in these namespaces instead of rights over the whole cluster.
    singleNamespaceInstall = true
    watchNamespace         = sort([for namespace in kubernetes_namespace_v1.watched : namespace.metadata[0].name])
    # The list replaces the chart's, so all gates stand here. RayCronJob is alpha in KubeRay 1.6 and 1.7, and off without this.
    featureGates = [for name in ["RayClusterStatusConditions", "RayCronJob", "RayJobDeletionPolicy"] : { name = name, enabled = true }]
    resources = {
      requests = { cpu = "100m", memory = "512Mi" }
      limits   = { cpu = "500m", memory = "512Mi" }
    }
  })]
}
