mock_provider "aws" {
  mock_data "aws_iam_policy_document" {
    defaults = { json = "{}" }
  }
}

variables {
  name            = "gristmill-jobs"
  cluster_name    = "gristmill"
  cluster_arn     = "arn:aws:eks:eu-central-1:123456789012:cluster/gristmill"
  namespace       = "gristmill"
  service_account = "gristmill"
  bucket_arn      = "arn:aws:s3:::example"
  key_arn         = "arn:aws:kms:eu-central-1:123456789012:key/1"
  folders         = { read = ["inputs"], write = ["outputs"] }
}

run "inputs_are_read_and_outputs_written" {
  command = plan

  assert {
    condition = { for statement in data.aws_iam_policy_document.bucket.statement : statement.sid => statement.resources } == {
      List = toset(["arn:aws:s3:::example"])
      Read = toset([
        "arn:aws:s3:::example/inputs", "arn:aws:s3:::example/inputs/*",
        "arn:aws:s3:::example/outputs", "arn:aws:s3:::example/outputs/*",
      ])
      Write = toset(["arn:aws:s3:::example/outputs/*"])
      Key   = toset(["arn:aws:kms:eu-central-1:123456789012:key/1"])
    }
    error_message = "Only the folders that were named."
  }
}

run "who_writes_nothing_may_write_nothing" {
  command = plan

  variables {
    folders = { read = ["inputs"] }
  }

  assert {
    condition     = toset(data.aws_iam_policy_document.bucket.statement[*].sid) == toset(["List", "Read", "Key"])
    error_message = "Without folders to write, no right to write."
  }
}

run "every_pod_is_refused" {
  command = plan

  variables {
    service_account = "default"
  }

  expect_failures = [var.service_account]
}

run "the_whole_bucket_is_refused" {
  command = plan

  variables {
    folders = { read = ["*"] }
  }

  expect_failures = [var.folders]
}

run "a_role_for_nothing_is_refused" {
  command = plan

  variables {
    folders = {}
  }

  expect_failures = [var.folders]
}
