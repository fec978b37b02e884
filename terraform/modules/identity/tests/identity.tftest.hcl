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

run "nobody_else_takes_the_role" {
  command = plan

  assert {
    condition = { for condition in data.aws_iam_policy_document.trust.statement[0].condition : condition.variable => condition.values } == {
      "aws:RequestTag/eks-cluster-arn"            = tolist(["arn:aws:eks:eu-central-1:123456789012:cluster/gristmill"])
      "aws:RequestTag/kubernetes-namespace"       = tolist(["gristmill"])
      "aws:RequestTag/kubernetes-service-account" = tolist(["gristmill"])
    }
    error_message = "One service account of one namespace of one cluster."
  }

  assert {
    condition     = alltrue([for condition in data.aws_iam_policy_document.trust.statement[0].condition : condition.test == "StringEquals"])
    error_message = "Equal, not like."
  }

  assert {
    condition = (
      data.aws_iam_policy_document.trust.statement[0].actions == toset(["sts:AssumeRole", "sts:TagSession"])
      && [for principal in data.aws_iam_policy_document.trust.statement[0].principals : [principal.type, tolist(principal.identifiers)]] == [["Service", tolist(["pods.eks.amazonaws.com"])]]
    )
    error_message = "The agent of EKS takes it, with the tags that say for whom."
  }

  assert {
    condition = (
      aws_eks_pod_identity_association.this.namespace == "gristmill"
      && aws_eks_pod_identity_association.this.service_account == "gristmill"
      && aws_eks_pod_identity_association.this.cluster_name == "gristmill"
    )
    error_message = "The role goes to the service account that was named."
  }
}

run "it_may_do_no_more_than_a_run_needs" {
  command = plan

  assert {
    condition = { for statement in data.aws_iam_policy_document.bucket.statement : statement.sid => statement.actions } == {
      List  = toset(["s3:ListBucket"])
      Read  = toset(["s3:GetObject"])
      Write = toset(["s3:AbortMultipartUpload", "s3:DeleteObject", "s3:PutObject"])
      Key   = toset(["kms:Decrypt", "kms:GenerateDataKey"])
    }
    error_message = "Old versions and the bucket itself are out of reach."
  }

  assert {
    condition = flatten([for statement in data.aws_iam_policy_document.bucket.statement : [
      for condition in statement.condition : [condition.test, condition.variable, condition.values]
    ]]) == ["StringLike", "s3:prefix", "inputs", "inputs/*", "outputs", "outputs/*"]
    error_message = "Only its folders are listed."
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

  assert {
    condition     = !contains(flatten([for statement in data.aws_iam_policy_document.bucket.statement : tolist(statement.actions)]), "kms:GenerateDataKey")
    error_message = "Without folders to write, no key to write with."
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

run "every_cluster_bucket_and_key_is_refused" {
  command = plan

  variables {
    name        = "Role"
    cluster_arn = "arn:aws:eks:eu-central-1:123456789012:cluster/*"
    bucket_arn  = "arn:aws:s3:::*"
    key_arn     = "*"
  }

  expect_failures = [var.name, var.cluster_arn, var.bucket_arn, var.key_arn]
}
