# `terraform test`: plans against made-up clouds. Nothing is reached and nothing is made.

mock_provider "aws" {
  mock_data "aws_region" {
    defaults = { region = "eu-central-1" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_data "aws_iam_policy_document" {
    defaults = { json = "{}" }
  }
  mock_resource "aws_eks_cluster" {
    defaults = {
      arn                   = "arn:aws:eks:eu-central-1:123456789012:cluster/gristmill"
      certificate_authority = [{ data = "UEVN" }]
    }
  }
}

mock_provider "helm" {}
mock_provider "kubernetes" {}

variables {
  region      = "eu-central-1"
  zones       = ["eu-central-1a", "eu-central-1b", "eu-central-1c"]
  bucket_name = "example-gristmill"
  api_cidrs   = ["203.0.113.7/32"]
}

run "cluster_alone" {
  command = plan

  assert {
    condition     = output.bucket_url == "s3://example-gristmill"
    error_message = "bucket_url is what a job's paths begin with."
  }

  assert {
    condition     = output.job_server == null && output.port_forward == null
    error_message = "Without a workload there is no job server."
  }
}

# Its claim, its pools and its service account are there: the checks of module workload say nothing.
run "the_nightly_example" {
  command = plan

  variables {
    manifest_files   = ["../../../deploy/examples/nightly.rendered.yaml"]
    service_accounts = { receipts-nightly = { read = ["receipts"], write = ["records"] } }
  }

  assert {
    condition     = output.job_server == null && keys(output.service_accounts) == ["receipts-nightly"]
    error_message = "A job of its own cluster has no job server that stays."
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

  assert {
    condition     = endswith(output.port_forward, "service/extract-head-svc 8265:8265")
    error_message = "port_forward reaches the same service."
  }
}

run "a_zone_of_another_region_is_refused" {
  command = plan

  variables {
    zones = ["eu-central-1a", "eu-west-1b"]
  }

  expect_failures = [var.zones]
}

run "a_zone_as_region_is_refused" {
  command = plan

  variables {
    region = "eu-central-1a"
  }

  expect_failures = [var.region]
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
