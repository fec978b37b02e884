terraform {
  required_version = ">= 1.10.0, < 2.0.0"
  required_providers {
    helm = {
      source  = "hashicorp/helm"
      version = ">= 3.1.1, < 4.0.0"
    }
  }
}
