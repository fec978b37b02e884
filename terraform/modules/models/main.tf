# The claim that `models: {claim: ...}` of a manifest names: a folder of the bucket, mounted read-only on every node that
# needs it, by Mountpoint for S3. A disk of the default storage class could be mounted on one node at a time.

locals {
  volume = "${var.namespace}-${var.claim}"
  driver = { namespace = "kube-system", account = "s3-csi-driver-sa" }
}

# The driver's own role: it reads this folder and nothing else, and pods need no right of their own to a model.
module "identity" {
  source = "../identity"

  name            = var.role_name
  cluster_name    = var.cluster_name
  cluster_arn     = var.cluster_arn
  namespace       = local.driver.namespace
  service_account = local.driver.account
  bucket_arn      = var.bucket_arn
  key_arn         = var.key_arn
  folders         = { read = [var.folder] }
}

resource "helm_release" "driver" {
  name       = "aws-mountpoint-s3-csi-driver"
  namespace  = local.driver.namespace
  repository = var.chart.repository
  chart      = "aws-mountpoint-s3-csi-driver"
  version    = var.chart.version

  atomic          = true
  cleanup_on_fail = true
  timeout         = 600

  values = [yamlencode({
    image = { repository = "${var.chart.registry}/mountpoint-s3-csi-driver/aws-mountpoint-s3-csi-driver" }
    sidecars = {
      nodeDriverRegistrar = { image = { repository = "${var.chart.registry}/csi-components/csi-node-driver-registrar" } }
      livenessProbe       = { image = { repository = "${var.chart.registry}/csi-components/livenessprobe" } }
    }
    node = { serviceAccount = { name = local.driver.account } }
  })]

  # Pods that start before their identity get none.
  depends_on = [module.identity]
}

# `manual` is no class that is there: it keeps the default class from making a disk instead.
resource "kubernetes_persistent_volume_v1" "this" {
  metadata {
    name = local.volume
  }

  spec {
    # Kubernetes wants a size; nothing looks at it.
    capacity                         = { storage = "1Ti" }
    access_modes                     = ["ReadOnlyMany"]
    storage_class_name               = "manual"
    persistent_volume_reclaim_policy = "Retain"
    # Pods are user 1000, group 100.
    mount_options = ["prefix ${var.folder}/", "region ${var.region}", "read-only", "allow-other", "uid=1000", "gid=100"]

    claim_ref {
      namespace = var.namespace
      name      = var.claim
    }

    persistent_volume_source {
      csi {
        driver            = "s3.csi.aws.com"
        volume_handle     = local.volume
        volume_attributes = { bucketName = split(":::", var.bucket_arn)[1] }
      }
    }
  }
}

resource "kubernetes_persistent_volume_claim_v1" "this" {
  metadata {
    name      = var.claim
    namespace = var.namespace
  }

  spec {
    access_modes       = ["ReadOnlyMany"]
    storage_class_name = "manual"
    volume_name        = kubernetes_persistent_volume_v1.this.metadata[0].name

    resources {
      requests = { storage = "1Ti" }
    }
  }

  depends_on = [helm_release.driver]
}
