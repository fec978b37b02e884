provider "aws" {
  region = var.region

  default_tags {
    tags = merge({ "managed-by" = "terraform", "application" = "gristmill", "environment" = var.name }, var.tags)
  }
}

# Tokens of the API live for minutes, so each run asks for its own: the AWS CLI has to be installed where Terraform runs.
locals {
  token_command = ["eks", "get-token", "--cluster-name", module.cluster.name, "--region", var.region, "--output", "json"]
}

provider "kubernetes" {
  host                   = module.cluster.endpoint
  cluster_ca_certificate = module.cluster.certificate_authority

  exec {
    api_version = "client.authentication.k8s.io/v1beta1"
    command     = "aws"
    args        = local.token_command
  }
}

provider "helm" {
  kubernetes = {
    host                   = module.cluster.endpoint
    cluster_ca_certificate = module.cluster.certificate_authority

    exec = {
      api_version = "client.authentication.k8s.io/v1beta1"
      command     = "aws"
      args        = local.token_command
    }
  }
}
