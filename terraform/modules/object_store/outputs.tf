output "bucket_arn" {
  description = "ARN of the bucket."
  value       = aws_s3_bucket.this.arn
}

output "bucket_url" {
  description = "What a job's `input.path` and `output` begin with."
  value       = "s3://${aws_s3_bucket.this.bucket}"
}

output "key_arn" {
  description = "ARN of the KMS key of the bucket."
  value       = aws_kms_key.this.arn
}
