output "certificate_authority" {
  description = "PEM of the authority that signed the API's certificate."
  value       = base64decode(aws_eks_cluster.this.certificate_authority[0].data)
}

output "endpoint" {
  description = "Address of the Kubernetes API."
  value       = aws_eks_cluster.this.endpoint
}

output "name" {
  description = "Name of the cluster."
  value       = aws_eks_cluster.this.name
}

output "arn" {
  description = "ARN of the cluster."
  value       = aws_eks_cluster.this.arn
}

output "node_role_name" {
  description = "IAM role of the nodes."
  value       = aws_iam_role.node.name
}

output "security_group_id" {
  description = "Security group of the cluster and its nodes."
  value       = aws_eks_cluster.this.vpc_config[0].cluster_security_group_id
}
