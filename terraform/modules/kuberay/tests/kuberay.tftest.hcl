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

run "nobody_else_reaches_ray" {
  command = plan

  assert {
    condition     = length(kubernetes_network_policy_v1.ingress["gristmill"].spec[0].ingress) == 2
    error_message = "The namespace itself and the operator, nobody else."
  }
}

run "metrics_and_clients_reach_their_ports" {
  command = plan

  variables {
    metrics_namespaces = ["monitoring"]
    client_namespaces  = ["shop"]
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
    chart_version = "1.5.1"
  }

  expect_failures = [var.chart_version]
}
