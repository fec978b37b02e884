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

run "old_versions_go_and_nothing_else" {
  command = plan

  assert {
    condition     = [for rule in aws_s3_bucket_lifecycle_configuration.this.rule : rule.id if rule.status == "Enabled"] == ["old-versions", "unfinished-uploads"]
    error_message = "Both rules are at work."
  }

  assert {
    condition = (
      aws_s3_bucket_lifecycle_configuration.this.rule[0].noncurrent_version_expiration[0].noncurrent_days == 30
      && aws_s3_bucket_lifecycle_configuration.this.rule[0].expiration[0].expired_object_delete_marker
      && aws_s3_bucket_lifecycle_configuration.this.rule[1].abort_incomplete_multipart_upload[0].days_after_initiation == 7
    )
    error_message = "An object that was deleted can be brought back for 30 days; parts of uploads go after a week."
  }
}

run "private_and_encrypted" {
  command = plan

  assert {
    condition = (
      one(one(aws_s3_bucket_server_side_encryption_configuration.this.rule).apply_server_side_encryption_by_default).sse_algorithm == "aws:kms"
      && one(aws_s3_bucket_server_side_encryption_configuration.this.rule).bucket_key_enabled
      && aws_kms_key.this.enable_key_rotation && aws_kms_key.this.deletion_window_in_days == 30
    )
    error_message = "A key of its own, that is turned, and can be brought back."
  }

  assert {
    condition     = one(aws_s3_bucket_ownership_controls.this.rule).object_ownership == "BucketOwnerEnforced"
    error_message = "No ACL opens an object."
  }

  assert {
    condition = [for statement in data.aws_iam_policy_document.bucket.statement : [
      statement.effect, tolist(statement.actions), [for condition in statement.condition : [condition.test, condition.variable, condition.values]],
    ]] == [["Deny", tolist(["s3:*"]), [["Bool", "aws:SecureTransport", tolist(["false"])]]]]
    error_message = "Nobody reads or writes over an open connection."
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

run "part_of_a_day_is_refused" {
  command = plan

  variables {
    keep_versions_days = 1.5
  }

  expect_failures = [var.keep_versions_days]
}
