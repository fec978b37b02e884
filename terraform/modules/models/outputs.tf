output "claim" {
  description = "Name of the claim, for `models: {claim: ...}` in the values of a manifest. Known when it is there."
  value       = kubernetes_persistent_volume_claim_v1.this.metadata[0].name
}
