mock_provider "helm" {}
mock_provider "kubernetes" {}

run "operator_alone" {
  command = plan

  variables {
    monitoring = false
  }

  assert {
    condition     = output.bucket_url == "/data" && output.grafana == null && output.job_server == null
    error_message = "Documents lie in /data; without monitoring and workload there is neither Grafana nor a job server."
  }
}

run "the_example_for_a_first_try" {
  command = plan

  variables {
    manifest_files = ["../../../deploy/examples/once.rendered.yaml"]
  }
}

run "with_workload" {
  command = plan

  variables {
    manifest_files = ["../../modules/workload/tests/fixtures/workload.yaml"]
  }

  assert {
    condition     = output.job_server == "http://extract-head-svc.gristmill.svc:8265"
    error_message = "job_server is the head service of the RayService."
  }
}

run "a_real_cluster_is_refused" {
  command = plan

  variables {
    context = "production"
  }

  expect_failures = [var.context]
}

run "without_internet" {
  command = plan

  variables {
    charts = { monitoring = { repository = "oci://registry.example.com/charts" } }
  }
}

run "a_chart_of_no_module_is_refused" {
  command = plan

  variables {
    charts = { kubray = { registry = "registry.example.com" } }
  }

  expect_failures = [var.charts]
}
