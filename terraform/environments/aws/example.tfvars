# Copy to terraform.tfvars. These four have no default that could be right for everybody.
region      = "eu-central-1"
zones       = ["eu-central-1a", "eu-central-1b", "eu-central-1c"]
bucket_name = "example-gristmill"
api_cidrs   = ["203.0.113.7/32"] # the address of the machine that runs Terraform
