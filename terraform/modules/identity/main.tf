# What one service account may do, by EKS Pod Identity: no key is stored anywhere, and another service account, namespace
# or cluster cannot take the role. Old versions of objects cannot be deleted by it, so versioning is a way back.

locals {
  folders = distinct(concat(var.folders.read, var.folders.write))
  # The folder's own name, too: a reader asks whether it is an object before it lists it. S3 says that an object is not
  # there only to who may list it, and takes the object's name for the prefix of the condition below.
  readable = flatten([for folder in local.folders : ["${var.bucket_arn}/${folder}", "${var.bucket_arn}/${folder}/*"]])
  writable = [for folder in var.folders.write : "${var.bucket_arn}/${folder}/*"]
  listable = flatten([for folder in local.folders : [folder, "${folder}/*"]])
}

data "aws_iam_policy_document" "trust" {
  statement {
    actions = ["sts:AssumeRole", "sts:TagSession"]

    principals {
      type        = "Service"
      identifiers = ["pods.eks.amazonaws.com"]
    }

    condition {
      test     = "StringEquals"
      variable = "aws:RequestTag/eks-cluster-arn"
      values   = [var.cluster_arn]
    }

    condition {
      test     = "StringEquals"
      variable = "aws:RequestTag/kubernetes-namespace"
      values   = [var.namespace]
    }

    condition {
      test     = "StringEquals"
      variable = "aws:RequestTag/kubernetes-service-account"
      values   = [var.service_account]
    }
  }
}

data "aws_iam_policy_document" "bucket" {
  statement {
    sid       = "List"
    actions   = ["s3:ListBucket"]
    resources = [var.bucket_arn]

    condition {
      test     = "StringLike"
      variable = "s3:prefix"
      values   = local.listable
    }
  }

  statement {
    sid       = "Read"
    actions   = ["s3:GetObject"]
    resources = local.readable
  }

  dynamic "statement" {
    for_each = length(local.writable) > 0 ? [local.writable] : []

    content {
      sid       = "Write"
      actions   = ["s3:AbortMultipartUpload", "s3:DeleteObject", "s3:PutObject"]
      resources = statement.value
    }
  }

  statement {
    sid       = "Key"
    actions   = concat(["kms:Decrypt"], length(local.writable) > 0 ? ["kms:GenerateDataKey"] : [])
    resources = [var.key_arn]
  }
}

resource "aws_iam_role" "this" {
  name_prefix        = "${var.name}-"
  assume_role_policy = data.aws_iam_policy_document.trust.json
}

resource "aws_iam_role_policy" "bucket" {
  name   = "bucket"
  role   = aws_iam_role.this.id
  policy = data.aws_iam_policy_document.bucket.json
}

resource "aws_eks_pod_identity_association" "this" {
  cluster_name    = var.cluster_name
  namespace       = var.namespace
  service_account = var.service_account
  role_arn        = aws_iam_role.this.arn
}
