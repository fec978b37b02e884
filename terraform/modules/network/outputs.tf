output "private_subnet_ids" {
  description = "Subnets for the cluster and its nodes, one in each zone."
  value       = values(aws_subnet.private)[*].id
}

output "vpc_id" {
  description = "The network."
  value       = aws_vpc.this.id
}
