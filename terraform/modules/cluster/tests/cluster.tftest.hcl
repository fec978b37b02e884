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

  assert {
    condition = (
      endswith(one(values(aws_eks_access_policy_association.admin)).policy_arn, ":eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy")
      && one(values(aws_eks_access_policy_association.admin)).access_scope[0].type == "cluster"
    )
    error_message = "An administrator administers."
  }
}

run "rights_are_asked_of_iam_and_written_down" {
  command = plan

  assert {
    condition     = aws_eks_cluster.this.access_config[0].authentication_mode == "API" && aws_eks_cluster.this.access_config[0].bootstrap_cluster_creator_admin_permissions && aws_eks_cluster.this.vpc_config[0].endpoint_private_access
    error_message = "Who may do what stands in access entries, whoever made the cluster among them; nodes speak to the API inside the network."
  }

  assert {
    condition     = aws_eks_cluster.this.enabled_cluster_log_types == toset(["api", "audit", "authenticator", "controllerManager", "scheduler"]) && aws_cloudwatch_log_group.control_plane.name == "/aws/eks/gristmill/cluster" && aws_cloudwatch_log_group.control_plane.retention_in_days == 365
    error_message = "Whoever asks a year later finds who did it."
  }

  assert {
    condition     = aws_eks_cluster.this.encryption_config[0].resources == toset(["secrets"]) && aws_kms_key.secrets.enable_key_rotation && aws_kms_key.secrets.deletion_window_in_days == 30
    error_message = "Secrets are encrypted with a key that is turned, and can be brought back."
  }
}

run "auto_mode_has_all_its_parts" {
  command = plan

  assert {
    condition = (
      aws_eks_cluster.this.compute_config[0].enabled
      && aws_eks_cluster.this.kubernetes_network_config[0].elastic_load_balancing[0].enabled
      && aws_eks_cluster.this.storage_config[0].block_storage[0].enabled
      && aws_eks_cluster.this.compute_config[0].node_pools == toset(["system"])
      && !aws_eks_cluster.this.bootstrap_self_managed_addons
      && aws_eks_cluster.this.upgrade_policy[0].support_type == "STANDARD"
    )
    error_message = "EKS refuses one part without the others."
  }

  assert {
    condition = toset(concat(
      [for attachment in values(aws_iam_role_policy_attachment.cluster) : trimprefix(attachment.policy_arn, "arn:aws:iam::aws:policy/")],
      [for attachment in values(aws_iam_role_policy_attachment.node) : trimprefix(attachment.policy_arn, "arn:aws:iam::aws:policy/")],
      )) == toset([
      "AmazonEC2ContainerRegistryPullOnly", "AmazonEKSBlockStoragePolicy", "AmazonEKSClusterPolicy", "AmazonEKSComputePolicy",
      "AmazonEKSLoadBalancingPolicy", "AmazonEKSNetworkingPolicy", "AmazonEKSWorkerNodeMinimalPolicy",
    ])
    error_message = "The policies that Auto Mode asks for, no others."
  }

  assert {
    condition = (
      data.aws_iam_policy_document.cluster_trust.statement[0].actions == toset(["sts:AssumeRole", "sts:TagSession"])
      && data.aws_iam_policy_document.node_trust.statement[0].actions == toset(["sts:AssumeRole"])
      && one(data.aws_iam_policy_document.cluster_trust.statement[0].principals).type == "Service"
      && one(data.aws_iam_policy_document.node_trust.statement[0].principals).type == "Service"
      && one(data.aws_iam_policy_document.cluster_trust.statement[0].principals).identifiers == toset(["eks.amazonaws.com"])
      && one(data.aws_iam_policy_document.node_trust.statement[0].principals).identifiers == toset(["ec2.amazonaws.com"])
    )
    error_message = "The service that needs the role takes it."
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

run "a_name_and_a_zone_that_do_not_do_are_refused" {
  command = plan

  variables {
    name       = "Grist_Mill"
    subnet_ids = ["subnet-1"]
  }

  expect_failures = [var.name, var.subnet_ids]
}
