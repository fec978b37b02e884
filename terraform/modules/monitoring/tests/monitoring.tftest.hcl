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
    condition     = !can(yamldecode(helm_release.prometheus.values[0]).grafana.adminPassword)
    error_message = "Nobody knows Grafana's password beforehand."
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
