mock_provider "helm" {}
mock_provider "kubernetes" {}

variables {
  namespaces = ["gristmill"]
}

run "the_operator_sees_these_namespaces" {
  command = plan

  assert {
    condition     = yamldecode(helm_release.operator.values[0]).watchNamespace == ["gristmill"] && yamldecode(helm_release.operator.values[0]).singleNamespaceInstall
    error_message = "Its rights end at the namespaces that were named."
  }

  assert {
    condition     = [for gate in yamldecode(helm_release.operator.values[0]).featureGates : gate.name if gate.enabled] == ["RayClusterStatusConditions", "RayCronJob", "RayJobDeletionPolicy"]
    error_message = "Schedules need the gate RayCronJob, and what cleans up after them RayJobDeletionPolicy."
  }
}

run "pods_run_without_rights" {
  command = plan

  assert {
    condition     = kubernetes_namespace_v1.operator.metadata[0].labels["pod-security.kubernetes.io/enforce"] == "restricted"
    error_message = "The operator keeps the strictest standard."
  }

  assert {
    condition     = kubernetes_namespace_v1.watched["gristmill"].metadata[0].labels["pod-security.kubernetes.io/enforce"] == "baseline"
    error_message = "Nobody starts a privileged pod beside Ray."
  }

  assert {
    condition = (
      kubernetes_network_policy_v1.egress["gristmill"].metadata[0].namespace == "gristmill"
      && kubernetes_network_policy_v1.egress["gristmill"].spec[0].egress[0].to[0].ip_block[0].cidr == "0.0.0.0/0"
      && kubernetes_network_policy_v1.egress["gristmill"].spec[0].egress[0].to[0].ip_block[0].except == tolist(["169.254.169.254/32"])
    )
    error_message = "The node's credentials are closed to pods."
  }

  assert {
    condition = (
      kubernetes_network_policy_v1.egress["gristmill"].spec[0].policy_types == tolist(["Egress"])
      && kubernetes_network_policy_v1.ingress["gristmill"].spec[0].policy_types == tolist(["Ingress"])
    )
    error_message = "A policy of the other kind would bind nothing."
  }
}

run "the_operator_has_what_it_needs" {
  command = plan

  assert {
    condition     = helm_release.operator.timeout == 600 && helm_release.operator.chart == "kuberay-operator" && yamldecode(helm_release.operator.values[0]).image.repository == "quay.io/kuberay/operator" && helm_release.operator.namespace == "kuberay-system"
    error_message = "The chart of the operator, in its own namespace, with time to start."
  }

  assert {
    condition     = yamldecode(helm_release.operator.values[0]).resources.limits.memory == yamldecode(helm_release.operator.values[0]).resources.requests.memory
    error_message = "The operator is not the first to be killed."
  }
}

run "nobody_else_reaches_ray" {
  command = plan

  assert {
    condition = (
      kubernetes_network_policy_v1.ingress["gristmill"].metadata[0].namespace == "gristmill"
      && length(kubernetes_network_policy_v1.ingress["gristmill"].spec[0].ingress) == 2
      && length(kubernetes_network_policy_v1.ingress["gristmill"].spec[0].ingress[0].from[0].pod_selector) == 1
    )
    error_message = "The pods of the namespace and the operator, nobody else."
  }
}

run "each_reaches_its_ports" {
  command = plan

  variables {
    metrics_namespaces = ["monitoring"]
    client_namespaces  = ["shop"]
  }

  assert {
    condition = [
      for rule in slice(kubernetes_network_policy_v1.ingress["gristmill"].spec[0].ingress, 1, 4) : [
        rule.from[0].namespace_selector[0].match_labels["kubernetes.io/metadata.name"],
        [for port in rule.ports : "${port.protocol} ${port.port}"],
      ]
      ] == [
      ["kuberay-system", ["TCP 8265", "TCP 8000", "TCP 52365"]],
      ["monitoring", ["TCP 8080", "TCP 44217", "TCP 44227"]],
      ["shop", ["TCP 8000"]],
    ]
    error_message = "The operator, whoever scrapes, and clients: none reaches the job server but the operator."
  }
}

run "without_internet" {
  command = plan

  variables {
    chart = { repository = "oci://registry.example.com/charts", registry = "registry.example.com/mirror" }
  }

  assert {
    condition     = helm_release.operator.repository == "oci://registry.example.com/charts" && helm_release.operator.version == "1.7.0"
    error_message = "The chart comes from the mirror, in the same version."
  }

  assert {
    condition     = yamldecode(helm_release.operator.values[0]).image == { repository = "registry.example.com/mirror/kuberay/operator" }
    error_message = "The image comes from the mirror, with the chart's tag."
  }
}

run "a_repository_that_anybody_on_the_way_can_change_is_refused" {
  command = plan

  variables {
    chart = { repository = "http://registry.example.com/charts" }
  }

  expect_failures = [var.chart]
}

run "a_registry_with_a_scheme_is_refused" {
  command = plan

  variables {
    chart = { registry = "https://registry.example.com" }
  }

  expect_failures = [var.chart]
}

run "everybody_as_a_client_is_refused" {
  command = plan

  variables {
    metrics_namespaces = ["*"]
    client_namespaces  = [""]
  }

  expect_failures = [var.metrics_namespaces, var.client_namespaces]
}

run "ray_beside_the_operator_is_refused" {
  command = plan

  variables {
    namespaces = ["gristmill", "kuberay-system"]
  }

  expect_failures = [var.namespaces]
}

run "a_version_without_schedules_is_refused" {
  command = plan

  variables {
    chart = { version = "1.5.1" }
  }

  expect_failures = [var.chart]
}

run "a_namespace_that_has_no_such_name_is_refused" {
  command = plan

  variables {
    namespaces = ["Gristmill"]
  }

  expect_failures = [var.namespaces]
}
