mock_provider "aws" {
  mock_data "aws_region" {
    defaults = { region = "eu-central-1" }
  }
  mock_data "aws_iam_policy_document" {
    defaults = { json = "{}" }
  }
}

variables {
  name  = "gristmill"
  zones = ["eu-central-1a", "eu-central-1b", "eu-central-1c"]
}

run "three_zones_and_one_way_out" {
  command = plan

  assert {
    condition     = length(aws_subnet.private) == 3 && length(aws_nat_gateway.this) == 1 && length(aws_route.nat) == 3
    error_message = "Each zone has a private subnet with a route to the one NAT gateway."
  }

  assert {
    condition     = length(distinct(concat(values(aws_subnet.private)[*].cidr_block, values(aws_subnet.public)[*].cidr_block))) == 6
    error_message = "Subnets do not share addresses."
  }
}

run "a_way_out_in_each_zone" {
  command = plan

  variables {
    nat_per_zone = true
    zones        = ["eu-central-1a", "eu-central-1b"]
  }

  assert {
    condition     = length(aws_nat_gateway.this) == 2 && length(aws_eip.nat) == 2
    error_message = "Each zone has a NAT gateway."
  }
}

run "a_range_of_another_size_is_refused" {
  command = plan

  variables {
    cidr = "10.0.0.0/20"
  }

  expect_failures = [var.cidr]
}

run "a_single_zone_is_refused" {
  command = plan

  variables {
    zones = ["eu-central-1a"]
  }

  expect_failures = [var.zones]
}
