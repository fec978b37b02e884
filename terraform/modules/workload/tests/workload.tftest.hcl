mock_provider "helm" {}

variables {
  namespace = "gristmill"
}

run "reads_what_the_files_hold" {
  command = plan

  variables {
    manifest_files = ["tests/fixtures/workload.yaml"]
  }

  assert {
    condition     = output.documents == 2 && output.cron_jobs == ["nightly"]
    error_message = "Two objects, one of them a RayCronJob; comments and empty documents are none."
  }

  assert {
    condition     = output.job_server == "http://extract-head-svc.gristmill.svc:8265"
    error_message = "job_server is the head service of the RayService."
  }

  assert {
    condition     = endswith(output.port_forward, "service/extract-head-svc 8265:8265")
    error_message = "port_forward reaches the same service."
  }
}

run "another_namespace_is_refused" {
  command = plan

  variables {
    manifest_files = ["tests/fixtures/elsewhere.yaml"]
  }

  expect_failures = [output.documents]
}

run "a_secret_is_refused" {
  command = plan

  variables {
    manifest_files = ["tests/fixtures/workload.yaml", "tests/fixtures/secret.yaml"]
  }

  expect_failures = [output.documents]
}

run "a_missing_file_is_refused" {
  command = plan

  variables {
    manifest_files = ["tests/fixtures/absent.yaml"]
  }

  expect_failures = [var.manifest_files]
}
