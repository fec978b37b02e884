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
      system = { families = ["m7i"], capacity = ["on-demand"], cpus = 64 }
    }
  }

  expect_failures = [var.pools]
}
