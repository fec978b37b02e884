mock_provider "helm" {}
mock_provider "kubernetes" {}

variables {
  dashboard_files = ["tests/fixtures/Job overview.json"]
  rule_files      = ["tests/fixtures/rules.yaml"]
}

run "files_become_dashboards_and_rules" {
  command = plan

  assert {
    condition     = kubernetes_config_map_v1.dashboard["Job overview.json"].metadata[0].name == "dashboard-job-overview"
    error_message = "A file's name becomes a name that Kubernetes takes."
  }

  assert {
    condition     = length(kubernetes_config_map_v1.dashboard) == 1 + length(fileset("../../../monitoring", "grafana/**/*.json")) && length(local.rule_files) == 2
    error_message = "The files that were named come besides those of this repository."
  }

  assert {
    condition = [for text in local.rules : [yamldecode(text).apiVersion, yamldecode(text).kind, yamldecode(text).metadata.name]] == [
      ["monitoring.coreos.com/v1", "PrometheusRule", "gristmill"], ["monitoring.coreos.com/v1", "PrometheusRule", "rules"],
    ]
    error_message = "Rules are objects of the Prometheus operator."
  }

  assert {
    condition = (
      yamldecode(local.rules[1]).spec.groups == yamldecode(file("tests/fixtures/rules.yaml")).groups
      && kubernetes_config_map_v1.dashboard["Job overview.json"].data["Job overview.json"] == file("tests/fixtures/Job overview.json")
    )
    error_message = "They hold what the files hold."
  }

  assert {
    condition = (
      kubernetes_namespace_v1.this.metadata[0].name == "monitoring" && helm_release.prometheus.namespace == "monitoring"
      && helm_release.prometheus.chart == "kube-prometheus-stack"
      && alltrue([for map in values(kubernetes_config_map_v1.dashboard) : map.metadata[0].namespace == "monitoring"])
      && kubernetes_namespace_v1.this.metadata[0].labels["pod-security.kubernetes.io/enforce"] == "privileged"
    )
    error_message = "All of it stands in one namespace, in which the node exporter may run."
  }

  assert {
    condition     = !can(yamldecode(helm_release.prometheus.values[0]).grafana.adminPassword)
    error_message = "Nobody knows Grafana's password beforehand."
  }
}

run "everything_is_scraped_and_kept" {
  command = plan

  assert {
    condition = (
      !anytrue(values({ for name, value in yamldecode(helm_release.prometheus.values[0]).prometheus.prometheusSpec : name => value if endswith(name, "NilUsesHelmValues") }))
      && yamldecode(helm_release.prometheus.values[0]).prometheus.prometheusSpec.retention == "30d"
      && yamldecode(helm_release.prometheus.values[0]).prometheus.prometheusSpec.storageSpec.volumeClaimTemplate.spec.resources.requests.storage == "50Gi"
    )
    error_message = "Monitors and rules of every namespace, for 30 days."
  }

  assert {
    condition     = length([for name in keys(yamldecode(helm_release.prometheus.values[0]).prometheus.prometheusSpec) : name if endswith(name, "NilUsesHelmValues")]) == 3
    error_message = "Monitors of pods, of services, and rules."
  }

  assert {
    condition     = alltrue([for map in values(kubernetes_config_map_v1.dashboard) : map.metadata[0].labels.grafana_dashboard == "1"])
    error_message = "Grafana finds dashboards by this label."
  }
}

run "disk_and_alerts_go_where_they_were_told_to" {
  command = plan

  variables {
    storage_class       = "gristmill"
    alertmanager_secret = "whom-to-tell"
  }

  assert {
    condition     = yamldecode(helm_release.prometheus.values[0]).prometheus.prometheusSpec.storageSpec.volumeClaimTemplate.spec.storageClassName == "gristmill"
    error_message = "The class that was named."
  }

  assert {
    condition     = yamldecode(helm_release.prometheus.values[0]).alertmanager.alertmanagerSpec.configSecret == "whom-to-tell"
    error_message = "The Secret that was named."
  }
}

run "images_come_from_where_the_chart_says" {
  command = plan

  assert {
    condition     = yamldecode(helm_release.prometheus.values[0]).global == {}
    error_message = "Nobody named a registry."
  }
}

run "without_internet" {
  command = plan

  variables {
    chart = { repository = "oci://registry.example.com/charts", registry = "registry.example.com/mirror" }
  }

  assert {
    condition     = helm_release.prometheus.repository == "oci://registry.example.com/charts" && helm_release.prometheus.version == "88.5.3"
    error_message = "The chart comes from the mirror, in the same version."
  }

  assert {
    condition     = yamldecode(helm_release.prometheus.values[0]).global.imageRegistry == "registry.example.com/mirror"
    error_message = "All images of the chart come from the mirror."
  }
}

run "a_repository_with_a_password_is_refused" {
  command = plan

  variables {
    chart = { repository = "https://somebody:password@registry.example.com/charts" }
  }

  expect_failures = [var.chart]
}

run "a_registry_with_a_scheme_is_refused" {
  command = plan

  variables {
    chart = { registry = "https://registry.example.com" }
  }

  expect_failures = [var.chart]
}

run "a_dashboard_that_is_no_json_is_refused" {
  command = plan

  variables {
    dashboard_files = ["tests/fixtures/rules.yaml"]
  }

  expect_failures = [var.dashboard_files]
}

run "rules_without_groups_are_refused" {
  command = plan

  variables {
    rule_files = ["tests/fixtures/Job overview.json"]
  }

  expect_failures = [var.rule_files]
}

run "days_and_sizes_have_bounds" {
  command = plan

  variables {
    retention_days = 0
    storage_gib    = 1
  }

  expect_failures = [var.retention_days, var.storage_gib]
}

run "a_chart_with_a_known_password_is_refused" {
  command = plan

  variables {
    chart = { version = "58.1.0" }
  }

  expect_failures = [var.chart]
}
