mock_provider "aws" {
  mock_data "aws_iam_policy_document" {
    defaults = { json = "{}" }
  }
}

mock_provider "helm" {}
mock_provider "kubernetes" {}

variables {
  namespace    = "gristmill"
  folder       = "models"
  region       = "eu-central-1"
  role_name    = "gristmill-models"
  cluster_name = "gristmill"
  cluster_arn  = "arn:aws:eks:eu-central-1:123456789012:cluster/gristmill"
  bucket_arn   = "arn:aws:s3:::example-gristmill"
  key_arn      = "arn:aws:kms:eu-central-1:123456789012:key/1"
}

run "a_claim_for_many_nodes_that_nobody_writes" {
  command = plan

  assert {
    condition     = output.claim == "models" && kubernetes_persistent_volume_v1.this.spec[0].claim_ref[0].namespace == "gristmill"
    error_message = "The volume is for this claim of this namespace."
  }

  assert {
    condition = (
      kubernetes_persistent_volume_v1.this.spec[0].access_modes == toset(["ReadOnlyMany"])
      && kubernetes_persistent_volume_claim_v1.this.spec[0].access_modes == toset(["ReadOnlyMany"])
      && contains(kubernetes_persistent_volume_v1.this.spec[0].mount_options, "read-only")
    )
    error_message = "Read by many, written by none."
  }

  assert {
    condition     = contains(kubernetes_persistent_volume_v1.this.spec[0].mount_options, "prefix models/")
    error_message = "The folder of the models, not the documents."
  }

  assert {
    condition     = kubernetes_persistent_volume_v1.this.spec[0].persistent_volume_source[0].csi[0].volume_attributes.bucketName == "example-gristmill"
    error_message = "The bucket of the ARN."
  }

  assert {
    condition     = kubernetes_persistent_volume_v1.this.spec[0].storage_class_name == kubernetes_persistent_volume_claim_v1.this.spec[0].storage_class_name
    error_message = "Claim and volume find each other."
  }
}

run "the_driver_is_who_has_the_role" {
  command = plan

  assert {
    condition = (
      local.driver == { namespace = "kube-system", account = "s3-csi-driver-sa" }
      && helm_release.driver.namespace == local.driver.namespace && helm_release.driver.chart == "aws-mountpoint-s3-csi-driver"
      && yamldecode(helm_release.driver.values[0]).node.serviceAccount.name == local.driver.account
    )
    error_message = "The service account that the chart makes, where it makes it."
  }

  assert {
    condition     = length(regexall("repository\": \"public.ecr.aws/", helm_release.driver.values[0])) == 3
    error_message = "Without a mirror, the images come from where they are published."
  }

  assert {
    condition     = kubernetes_persistent_volume_v1.this.spec[0].persistent_volume_source[0].csi[0].driver == "s3.csi.aws.com"
    error_message = "The volume is that driver's."
  }
}

run "claim_and_volume_hold_each_other" {
  command = plan

  assert {
    condition = (
      kubernetes_persistent_volume_claim_v1.this.spec[0].volume_name == kubernetes_persistent_volume_v1.this.metadata[0].name
      && kubernetes_persistent_volume_claim_v1.this.metadata[0].namespace == "gristmill"
      && kubernetes_persistent_volume_v1.this.metadata[0].name == "gristmill-models"
    )
    error_message = "No other claim takes the volume, and the claim no other volume."
  }

  assert {
    condition     = kubernetes_persistent_volume_v1.this.spec[0].persistent_volume_reclaim_policy == "Retain"
    error_message = "Deleting the claim deletes no model."
  }
}

run "without_internet" {
  command = plan

  variables {
    chart = { repository = "oci://registry.example.com/charts", registry = "registry.example.com/mirror" }
  }

  assert {
    condition     = helm_release.driver.repository == "oci://registry.example.com/charts" && helm_release.driver.version == "2.7.0"
    error_message = "The chart comes from the mirror, in the same version."
  }

  assert {
    condition     = length(regexall("repository\": \"registry.example.com/mirror/", helm_release.driver.values[0])) == 3
    error_message = "All three images of the driver come from the mirror."
  }
}

run "an_old_driver_is_refused" {
  command = plan

  variables {
    chart = { version = "1.14.0" }
  }

  expect_failures = [var.chart]
}

run "the_whole_bucket_is_refused" {
  command = plan

  variables {
    folder = "/"
  }

  expect_failures = [var.folder]
}

run "every_bucket_is_refused" {
  command = plan

  variables {
    bucket_arn = "arn:aws:s3:::*"
  }

  expect_failures = [var.bucket_arn]
}

run "a_repository_that_anybody_on_the_way_can_change_is_refused" {
  command = plan

  variables {
    chart = { repository = "http://registry.example.com/charts" }
    claim = "Models"
  }

  expect_failures = [var.chart, var.claim]
}

run "a_registry_with_a_scheme_is_refused" {
  command = plan

  variables {
    chart = { registry = "https://registry.example.com" }
  }

  expect_failures = [var.chart]
}
