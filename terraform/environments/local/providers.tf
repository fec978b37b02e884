provider "kubernetes" {
  config_path    = pathexpand(var.kubeconfig)
  config_context = var.context
}

provider "helm" {
  kubernetes = {
    config_path    = pathexpand(var.kubeconfig)
    config_context = var.context
  }
}
