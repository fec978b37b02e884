# Pools of EKS Auto Mode. A pool has no nodes until a pod asks for one that only it can give, and none again
# `idle_minutes` after the last pod of a node has gone. Pods at work are never moved to save a node.

locals {
  node_class = yamlencode({
    apiVersion = "eks.amazonaws.com/v1"
    kind       = "NodeClass"
    metadata   = { name = "gristmill" }
    spec = {
      role                       = var.node_role_name
      subnetSelectorTerms        = [for id in var.subnet_ids : { id = id }]
      securityGroupSelectorTerms = [{ id = var.security_group_id }]
      ephemeralStorage           = { size = "${var.disk_gib}Gi" }
      networkPolicy              = "DefaultAllow"
    }
  })

  requirements = { for name, pool in var.pools : name => concat(
    [
      { key = "kubernetes.io/arch", operator = "In", values = ["amd64"] },
      { key = "karpenter.sh/capacity-type", operator = "In", values = pool.capacity },
      { key = "eks.amazonaws.com/instance-family", operator = "In", values = pool.families },
    ],
    length(pool.sizes) == 0 ? [] : [{ key = "eks.amazonaws.com/instance-size", operator = "In", values = pool.sizes }],
  ) }

  pools = { for name, pool in var.pools : name => yamlencode({
    apiVersion = "karpenter.sh/v1"
    kind       = "NodePool"
    metadata   = { name = name }
    spec = {
      # A heavier pool is tried first: pods that would go anywhere stay off GPUs, which are tainted besides.
      weight = pool.gpus > 0 ? 1 : 10
      limits = merge({ cpu = tostring(pool.cpus) }, pool.gpus > 0 ? { "nvidia.com/gpu" = tostring(pool.gpus) } : {})
      disruption = {
        consolidationPolicy = "WhenEmpty"
        consolidateAfter    = "${pool.idle_minutes}m"
      }
      template = {
        metadata = { labels = { "gristmill.dev/pool" = name } }
        spec = {
          nodeClassRef = { group = "eks.amazonaws.com", kind = "NodeClass", name = "gristmill" }
          requirements = local.requirements[name]
          taints = concat(
            pool.gpus > 0 ? [{ key = "nvidia.com/gpu", value = "present", effect = "NoSchedule" }] : [],
            contains(pool.capacity, "spot") ? [{ key = "gristmill.dev/spot", value = "true", effect = "NoSchedule" }] : [],
          )
        }
      }
    }
  }) }
}

# Without it Auto Mode accepts network policies and does not enforce them.
resource "kubernetes_config_map_v1" "network_policies" {
  metadata {
    name      = "amazon-vpc-cni"
    namespace = "kube-system"
  }

  data = { "enable-network-policy-controller" = "true" }
}

# Auto Mode brings the driver and no class that uses it. Disks of monitoring and of a model cache are of this one.
resource "kubernetes_storage_class_v1" "this" {
  metadata {
    name        = "gristmill"
    annotations = { "storageclass.kubernetes.io/is-default-class" = "true" }
  }

  storage_provisioner    = "ebs.csi.eks.amazonaws.com"
  volume_binding_mode    = "WaitForFirstConsumer"
  allow_volume_expansion = true

  parameters = {
    type      = "gp3"
    encrypted = "true"
  }
}

module "release" {
  source = "../manifests"

  name      = "node-pools"
  namespace = "kube-system"
  manifests = concat([local.node_class], values(local.pools))
}
