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

# Together: names that clash are found, too.
run "every_example_of_deploy" {
  command = plan

  variables {
    manifest_files = [for name in ["nightly", "once", "pool_job", "service"] : "../../../deploy/examples/${name}.rendered.yaml"]
    claims         = ["documents", "models"]
    pools          = ["cpu", "gpu", "steady"]
  }

  assert {
    condition     = output.cron_jobs == ["receipts-nightly"] && output.job_server == "http://extract-head-svc.gristmill.svc:8265"
    error_message = "The night's job and the endpoint's job server."
  }

  assert {
    condition     = toset([for document in local.documents : document.kind]) == toset(["ConfigMap", "CronJob", "PodMonitor", "RayCronJob", "RayJob", "RayService", "ServiceAccount"])
    error_message = "All kinds that are rendered are read."
  }

  # A run that began under the rendering before mounts its ConfigMap in pods that start later.
  assert {
    condition = alltrue([
      for document in local.documents : try(document.metadata.annotations["helm.sh/resource-policy"], "") == "keep"
      if document.kind == "ConfigMap"
    ])
    error_message = "A new release takes no ConfigMap away."
  }
}

run "what_is_not_there_is_told" {
  command = plan

  variables {
    manifest_files   = ["../../../deploy/examples/nightly.rendered.yaml"]
    claims           = ["documents"]
    pools            = ["steady"]
    service_accounts = ["gristmill"]
  }

  expect_failures = [check.claims, check.pools, check.service_accounts]
}

run "the_same_object_twice_is_refused" {
  command = plan

  variables {
    manifest_files = ["tests/fixtures/workload.yaml", "tests/fixtures/elsewhere.yaml"]
    namespace      = "elsewhere"
  }

  expect_failures = [output.documents]
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
