mock_provider "aws" {
  mock_data "aws_iam_policy_document" {
    defaults = { json = "{}" }
  }
}

variables {
  bucket_name = "example-gristmill"
}

run "keeps_what_is_stored" {
  command = plan

  assert {
    condition     = aws_s3_bucket_versioning.this.versioning_configuration[0].status == "Enabled" && !aws_s3_bucket.this.force_destroy
    error_message = "Objects have versions, and a bucket with objects is not deleted."
  }

  assert {
    condition     = output.bucket_url == "s3://example-gristmill"
    error_message = "bucket_url is what a job's paths begin with."
  }
}

run "a_name_that_no_bucket_has_is_refused" {
  command = plan

  variables {
    bucket_name = "Example_Bucket"
  }

  expect_failures = [var.bucket_name]
}

run "no_days_are_refused" {
  command = plan

  variables {
    keep_versions_days = 0
  }

  expect_failures = [var.keep_versions_days]
}
