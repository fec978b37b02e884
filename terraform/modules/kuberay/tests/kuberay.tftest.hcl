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
    condition     = contains([for gate in yamldecode(helm_release.operator.values[0]).featureGates : gate.name if gate.enabled], "RayCronJob")
    error_message = "Schedules need the gate RayCronJob."
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
    condition     = kubernetes_network_policy_v1.egress["gristmill"].spec[0].egress[0].to[0].ip_block[0].except == tolist(["169.254.169.254/32"])
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

run "the_operator_is_whole_or_not_there" {
  command = plan

  assert {
    condition     = helm_release.operator.atomic && helm_release.operator.cleanup_on_fail && helm_release.operator.namespace == "kuberay-system"
    error_message = "An installation that failed leaves nothing half done."
  }

  assert {
    condition     = yamldecode(helm_release.operator.values[0]).resources.limits.memory == yamldecode(helm_release.operator.values[0]).resources.requests.memory
    error_message = "The operator is not the first to be killed."
  }
}

run "nobody_else_reaches_ray" {
  command = plan

  assert {
    condition     = length(kubernetes_network_policy_v1.ingress["gristmill"].spec[0].ingress) == 2
    error_message = "The namespace itself and the operator, nobody else."
  }

  assert {
    condition = (
      kubernetes_network_policy_v1.ingress["gristmill"].spec[0].ingress[1].from[0].namespace_selector[0].match_labels["kubernetes.io/metadata.name"] == "kuberay-system"
      && toset([for port in kubernetes_network_policy_v1.ingress["gristmill"].spec[0].ingress[1].ports : port.port]) == toset(["8265", "8000", "52365"])
    )
    error_message = "The operator reaches the three ports that it asks."
  }
}

run "metrics_and_clients_reach_their_ports" {
  command = plan

  variables {
    metrics_namespaces = ["monitoring"]
    client_namespaces  = ["shop"]
  }

  assert {
    condition = (
      kubernetes_network_policy_v1.ingress["gristmill"].spec[0].ingress[2].from[0].namespace_selector[0].match_labels["kubernetes.io/metadata.name"] == "monitoring"
      && kubernetes_network_policy_v1.ingress["gristmill"].spec[0].ingress[3].from[0].namespace_selector[0].match_labels["kubernetes.io/metadata.name"] == "shop"
    )
    error_message = "The namespaces that are named."
  }

  assert {
    condition     = [for port in kubernetes_network_policy_v1.ingress["gristmill"].spec[0].ingress[3].ports : port.port] == ["8000"]
    error_message = "Clients reach the endpoint and not the job server."
  }

  assert {
    condition     = !contains([for port in kubernetes_network_policy_v1.ingress["gristmill"].spec[0].ingress[2].ports : port.port], "8265")
    error_message = "Who scrapes metrics does not reach the job server."
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
