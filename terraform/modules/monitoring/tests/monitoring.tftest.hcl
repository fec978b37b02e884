mock_provider "helm" {}
mock_provider "kubernetes" {}

variables {
  dashboard_files = ["tests/fixtures/Job overview.json"]
  rule_files      = ["tests/fixtures/rules.yaml"]
}

run "files_become_dashboards_and_rules" {
  command = plan

  assert {
    condition     = one(values(kubernetes_config_map_v1.dashboard)).metadata[0].name == "dashboard-job-overview"
    error_message = "A file's name becomes a name that Kubernetes takes."
  }

  assert {
    condition     = length(module.rules) == 1
    error_message = "Rules are a release of their own."
  }

  assert {
    condition     = !can(yamldecode(helm_release.prometheus.values[0]).grafana.adminPassword)
    error_message = "Nobody knows Grafana's password beforehand."
  }
}

run "without_files" {
  command = plan

  variables {
    dashboard_files = []
    rule_files      = []
  }

  assert {
    condition     = length(kubernetes_config_map_v1.dashboard) == 0 && length(module.rules) == 0
    error_message = "Nothing is made of no files."
  }
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

run "a_chart_with_a_known_password_is_refused" {
  command = plan

  variables {
    chart_version = "58.1.0"
  }

  expect_failures = [var.chart_version]
}
