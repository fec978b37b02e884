mock_provider "helm" {}
mock_provider "kubernetes" {}

variables {
  node_role_name    = "node"
  subnet_ids        = ["subnet-1"]
  security_group_id = "sg-1"
  pools = {
    steady = { families = ["m7i"], capacity = ["on-demand"], cpus = 64 }
    gpu    = { families = ["g6"], sizes = ["xlarge"], capacity = ["spot", "on-demand"], cpus = 64, gpus = 8 }
  }
}

run "pools_are_bounded_and_empty_when_idle" {
  command = plan

  assert {
    condition = alltrue([for pool in values(local.pools) :
    yamldecode(pool).spec.disruption.consolidationPolicy == "WhenEmpty" && yamldecode(pool).spec.limits.cpu == "64"])
    error_message = "A pool has a most, and loses nodes that have no pods."
  }

  assert {
    condition     = yamldecode(local.pools.gpu).spec.limits["nvidia.com/gpu"] == "8"
    error_message = "GPUs have a most of their own."
  }
}

run "only_what_tolerates_it_runs_on_gpus_and_spot" {
  command = plan

  assert {
    condition     = toset(yamldecode(local.pools.gpu).spec.template.spec.taints[*].key) == toset(["nvidia.com/gpu", "gristmill.dev/spot"])
    error_message = "GPU nodes are tainted, and so are nodes that may vanish."
  }

  assert {
    condition     = length(yamldecode(local.pools.steady).spec.template.spec.taints) == 0
    error_message = "One pool takes pods that tolerate nothing."
  }
}

run "nodes_are_of_this_cluster_and_network" {
  command = plan

  assert {
    condition = yamldecode(local.node_class) == {
      apiVersion = "eks.amazonaws.com/v1"
      kind       = "NodeClass"
      metadata   = { name = "gristmill" }
      spec = {
        role                       = "node"
        subnetSelectorTerms        = [{ id = "subnet-1" }]
        securityGroupSelectorTerms = [{ id = "sg-1" }]
        ephemeralStorage           = { size = "200Gi" }
        networkPolicy              = "DefaultAllow"
      }
    }
    error_message = "Role, subnets and group that were given."
  }

  assert {
    condition = { for requirement in yamldecode(local.pools.gpu).spec.template.spec.requirements : requirement.key => requirement.values if requirement.operator == "In" } == {
      "kubernetes.io/arch"                = ["amd64"]
      "karpenter.sh/capacity-type"        = ["spot", "on-demand"]
      "eks.amazonaws.com/instance-family" = ["g6"]
      "eks.amazonaws.com/instance-size"   = ["xlarge"]
    }
    error_message = "The instances that were named."
  }

  assert {
    condition     = length(yamldecode(local.pools.steady).spec.template.spec.requirements) == 3
    error_message = "Without sizes, any size."
  }

  assert {
    condition     = yamldecode(local.pools.steady).spec.weight > yamldecode(local.pools.gpu).spec.weight && yamldecode(local.pools.gpu).spec.disruption.consolidateAfter == "10m"
    error_message = "What needs no GPU is tried elsewhere first; an empty node waits for ten minutes."
  }

  assert {
    condition = (
      [yamldecode(local.pools.gpu).apiVersion, yamldecode(local.pools.gpu).kind, yamldecode(local.pools.gpu).metadata.name] == ["karpenter.sh/v1", "NodePool", "gpu"]
      && yamldecode(local.pools.gpu).spec.template.metadata.labels == output.node_selectors.gpu
      && yamldecode(local.pools.gpu).spec.template.spec.nodeClassRef == { group = "eks.amazonaws.com", kind = "NodeClass", name = "gristmill" }
    )
    error_message = "A pod finds the pool by its label."
  }
}

run "disks_are_encrypted_and_policies_in_force" {
  command = plan

  assert {
    condition     = kubernetes_storage_class_v1.this.parameters == tomap({ type = "gp3", encrypted = "true" }) && kubernetes_storage_class_v1.this.storage_provisioner == "ebs.csi.eks.amazonaws.com"
    error_message = "Auto Mode's driver, encrypted."
  }

  assert {
    condition = (
      kubernetes_storage_class_v1.this.metadata[0].annotations["storageclass.kubernetes.io/is-default-class"] == "true"
      && kubernetes_storage_class_v1.this.volume_binding_mode == "WaitForFirstConsumer" && kubernetes_storage_class_v1.this.allow_volume_expansion
    )
    error_message = "A disk is made in the zone of its pod, and can grow."
  }

  assert {
    condition = (
      kubernetes_config_map_v1.network_policies.metadata[0].name == "amazon-vpc-cni" && kubernetes_config_map_v1.network_policies.metadata[0].namespace == "kube-system"
      && kubernetes_config_map_v1.network_policies.data["enable-network-policy-controller"] == "true"
    )
    error_message = "Without it, network policies are accepted and not enforced."
  }
}

run "another_kind_of_capacity_is_refused" {
  command = plan

  variables {
    pools = {
      steady = { families = ["m7i"], capacity = ["on-demand"], cpus = 64 }
      cheap  = { families = ["m7i"], capacity = ["cheap"], cpus = 64 }
    }
  }

  expect_failures = [var.pools]
}

run "pools_that_leave_no_place_for_the_operator_are_refused" {
  command = plan

  variables {
    pools = {
      cpu = { families = ["m7i"], capacity = ["spot"], cpus = 64 }
      gpu = { families = ["g6"], capacity = ["on-demand"], cpus = 64, gpus = 8 }
    }
  }

  expect_failures = [var.pools]
}

run "the_name_of_a_pool_of_auto_mode_is_refused" {
  command = plan

  variables {
    pools = {
      general-purpose = { families = ["m7i"], capacity = ["on-demand"], cpus = 64 }
    }
  }

  expect_failures = [var.pools]
}

run "pools_without_bounds_or_instances_are_refused" {
  command = plan

  variables {
    pools = {
      steady = { families = ["m7i"], capacity = ["on-demand"], cpus = 0 }
    }
  }

  expect_failures = [var.pools]
}

run "pools_without_instances_are_refused" {
  command = plan

  variables {
    pools = {
      steady = { families = [], capacity = ["on-demand"], cpus = 8 }
    }
  }

  expect_failures = [var.pools]
}

run "a_pool_with_a_name_that_is_no_label_is_refused" {
  command = plan

  variables {
    pools = {
      Steady = { families = ["m7i"], capacity = ["on-demand"], cpus = 8 }
    }
  }

  expect_failures = [var.pools]
}

run "nodes_without_subnets_or_with_a_small_disk_are_refused" {
  command = plan

  variables {
    subnet_ids = []
    disk_gib   = 20
  }

  expect_failures = [var.subnet_ids, var.disk_gib]
}
