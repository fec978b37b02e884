mock_provider "aws" {
  mock_data "aws_iam_policy_document" {
    defaults = { json = "{}" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_resource "aws_eks_cluster" {
    defaults = { certificate_authority = [{ data = "UEVN" }] }
  }
}

variables {
  name       = "gristmill"
  subnet_ids = ["subnet-1", "subnet-2"]
}

run "without_ranges_the_api_is_private" {
  command = plan

  assert {
    condition     = !aws_eks_cluster.this.vpc_config[0].endpoint_public_access
    error_message = "Nobody named a range, so nobody reaches the API from outside."
  }
}

run "named_ranges_reach_the_api" {
  command = plan

  variables {
    api_cidrs  = ["203.0.113.7/32"]
    admin_arns = ["arn:aws:iam::123456789012:role/platform"]
  }

  assert {
    condition     = aws_eks_cluster.this.vpc_config[0].endpoint_public_access && aws_eks_cluster.this.vpc_config[0].public_access_cidrs == toset(["203.0.113.7/32"])
    error_message = "The ranges that are named, no others."
  }

  assert {
    condition     = length(aws_eks_access_policy_association.admin) == 1
    error_message = "The administrator that is named."
  }
}

run "the_internet_is_refused" {
  command = plan

  variables {
    api_cidrs = ["203.0.113.7/32", "0.0.0.0/0"]
  }

  expect_failures = [var.api_cidrs]
}

run "everybody_as_administrator_is_refused" {
  command = plan

  variables {
    admin_arns = ["arn:aws:iam::123456789012:role/*"]
  }

  expect_failures = [var.admin_arns]
}

run "an_old_version_is_refused" {
  command = plan

  variables {
    kubernetes_version = "1.29"
  }

  expect_failures = [var.kubernetes_version]
}
