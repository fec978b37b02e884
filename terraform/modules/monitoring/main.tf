# Prometheus, Alertmanager and Grafana by their community chart, with this repository's dashboards and rules. Grafana's
# password is one that the chart makes up; it finds dashboards by the label of their ConfigMaps.

resource "kubernetes_namespace_v1" "this" {
  metadata {
    name = var.namespace
    # The node exporter reads the host's /proc, which `baseline` forbids.
    labels = { "pod-security.kubernetes.io/enforce" = "privileged" }
  }
}

locals {
  own             = "${path.module}/../../../monitoring"
  dashboard_files = concat([for name in fileset(local.own, "grafana/**/*.json") : "${local.own}/${name}"], tolist(var.dashboard_files))
  rule_files      = concat([for name in fileset(local.own, "rules/*.yml") : "${local.own}/${name}"], tolist(var.rule_files))

  rules = [for path in sort(local.rule_files) : yamlencode({
    apiVersion = "monitoring.coreos.com/v1"
    kind       = "PrometheusRule"
    metadata   = { name = replace(lower(replace(basename(path), "/\\.ya?ml$/", "")), "/[^a-z0-9]+/", "-") }
    spec       = { groups = yamldecode(file(path)).groups }
  })]

  # Every PodMonitor and rule of the cluster, not only those with the release's label.
  select_all = {
    podMonitorSelectorNilUsesHelmValues     = false
    serviceMonitorSelectorNilUsesHelmValues = false
    ruleSelectorNilUsesHelmValues           = false
  }
}

resource "helm_release" "prometheus" {
  name       = "monitoring"
  namespace  = kubernetes_namespace_v1.this.metadata[0].name
  repository = var.chart.repository
  chart      = "kube-prometheus-stack"
  version    = var.chart.version

  atomic          = true
  cleanup_on_fail = true
  timeout         = 900

  values = [yamlencode({
    global = var.chart.registry == null ? {} : { imageRegistry = var.chart.registry }
    prometheus = {
      prometheusSpec = merge(local.select_all, {
        retention = "${var.retention_days}d"
        storageSpec = {
          volumeClaimTemplate = { spec = merge(
            { accessModes = ["ReadWriteOnce"], resources = { requests = { storage = "${var.storage_gib}Gi" } } },
            var.storage_class == null ? {} : { storageClassName = var.storage_class },
          ) }
        }
      })
    }
    alertmanager = {
      alertmanagerSpec = var.alertmanager_secret == null ? {} : { configSecret = var.alertmanager_secret }
    }
  })]
}

resource "kubernetes_config_map_v1" "dashboard" {
  for_each = { for path in local.dashboard_files : basename(path) => path }

  metadata {
    name      = "dashboard-${replace(lower(trimsuffix(basename(each.value), ".json")), "/[^a-z0-9]+/", "-")}"
    namespace = kubernetes_namespace_v1.this.metadata[0].name
    labels    = { grafana_dashboard = "1" }
  }

  data = { (basename(each.value)) = file(each.value) }
}

module "rules" {
  source = "../manifests"

  name      = "gristmill-rules"
  namespace = kubernetes_namespace_v1.this.metadata[0].name
  manifests = local.rules

  # The chart brings the definition of PrometheusRule.
  depends_on = [helm_release.prometheus]
}
