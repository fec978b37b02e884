# Whoever reaches Ray's job server can run anything as Ray. Nothing outside a namespace reaches its pods, except the
# operator and whoever scrapes metrics; `kubectl port-forward` does not pass here, it asks for rights on the API.

resource "kubernetes_network_policy_v1" "ingress" {
  for_each = var.namespaces

  metadata {
    name      = "ingress"
    namespace = kubernetes_namespace_v1.watched[each.value].metadata[0].name
  }

  spec {
    policy_types = ["Ingress"]
    pod_selector {}

    # Ray's processes use many ports among themselves.
    ingress {
      from {
        pod_selector {}
      }
    }

    ingress {
      from {
        namespace_selector {
          match_labels = { "kubernetes.io/metadata.name" = var.operator_namespace }
        }
      }

      # Dashboard and job server, Serve, and the dashboard's agent, whose health the operator asks for.
      dynamic "ports" {
        for_each = [8265, 8000, 52365]

        content {
          protocol = "TCP"
          port     = tostring(ports.value)
        }
      }
    }

    dynamic "ingress" {
      for_each = length(var.metrics_namespaces) > 0 ? [var.metrics_namespaces] : []

      content {
        dynamic "from" {
          for_each = ingress.value

          content {
            namespace_selector {
              match_labels = { "kubernetes.io/metadata.name" = from.value }
            }
          }
        }

        # Ray's own exporter, the autoscaler, the dashboard.
        dynamic "ports" {
          for_each = [8080, 44217, 44227]

          content {
            protocol = "TCP"
            port     = tostring(ports.value)
          }
        }
      }
    }

    dynamic "ingress" {
      for_each = length(var.client_namespaces) > 0 ? [var.client_namespaces] : []

      content {
        dynamic "from" {
          for_each = ingress.value

          content {
            namespace_selector {
              match_labels = { "kubernetes.io/metadata.name" = from.value }
            }
          }
        }

        ports {
          protocol = "TCP"
          port     = "8000"
        }
      }
    }
  }
}

# A pod that a document has taken over does not get the node's own rights.
resource "kubernetes_network_policy_v1" "egress" {
  for_each = var.namespaces

  metadata {
    name      = "no-node-credentials"
    namespace = kubernetes_namespace_v1.watched[each.value].metadata[0].name
  }

  spec {
    policy_types = ["Egress"]
    pod_selector {}

    egress {
      to {
        ip_block {
          cidr   = "0.0.0.0/0"
          except = ["169.254.169.254/32"]
        }
      }
    }
  }
}
