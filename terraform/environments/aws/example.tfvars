# Copy to terraform.tfvars. These three have no default that could be right for everybody.
region      = "eu-central-1"
bucket_name = "example-gristmill"
api_cidrs   = ["203.0.113.7/32"] # the address of the machine that runs Terraform
