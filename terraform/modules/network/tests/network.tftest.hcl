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

run "nodes_are_out_of_reach" {
  command = plan

  assert {
    condition     = length(aws_route_table_association.private) == 3 && length(aws_route_table.private) == 3 && length(aws_route_table_association.public) == 3
    error_message = "Each subnet has a table."
  }

  assert {
    condition     = aws_route.internet.destination_cidr_block == "0.0.0.0/0" && alltrue([for route in values(aws_route.nat) : route.destination_cidr_block == "0.0.0.0/0"])
    error_message = "Private subnets go out by NAT, NAT by the gateway."
  }

  assert {
    condition     = alltrue([for zone in var.zones : aws_subnet.private[zone].availability_zone == zone && aws_subnet.public[zone].availability_zone == zone]) && alltrue([for subnet in values(aws_subnet.private) : subnet.tags["kubernetes.io/role/internal-elb"] == "1"])
    error_message = "A subnet lies in its zone; load balancers inside the network find it."
  }

  assert {
    condition     = aws_vpc_endpoint.s3.service_name == "com.amazonaws.eu-central-1.s3" && aws_vpc_endpoint.s3.vpc_endpoint_type == "Gateway"
    error_message = "Documents do not go over the internet, nor through NAT."
  }

  assert {
    condition     = aws_vpc.this.cidr_block == "10.64.0.0/16" && aws_vpc.this.enable_dns_support && aws_vpc.this.enable_dns_hostnames && alltrue([for address in values(aws_eip.nat) : address.domain == "vpc"])
    error_message = "The range that was given; EKS needs names."
  }
}

run "who_spoke_with_whom_is_kept" {
  command = plan

  assert {
    condition     = aws_flow_log.this.traffic_type == "ALL" && aws_flow_log.this.log_destination_type == "cloud-watch-logs" && aws_cloudwatch_log_group.flow.retention_in_days == 365
    error_message = "All traffic, for a year."
  }

  assert {
    condition = (
      one(data.aws_iam_policy_document.flow.statement).actions == toset(["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"])
      && data.aws_iam_policy_document.flow_trust.statement[0].actions == toset(["sts:AssumeRole"])
      && one(data.aws_iam_policy_document.flow_trust.statement[0].principals).type == "Service"
      && one(data.aws_iam_policy_document.flow_trust.statement[0].principals).identifiers == toset(["vpc-flow-logs.amazonaws.com"])
    )
    error_message = "Flow logs write logs and nothing else."
  }
}

# Applied, against the made-up cloud: ids are known then.
run "everything_is_wired" {
  command = apply

  assert {
    condition = alltrue([
      for id in concat(
        values(aws_subnet.private)[*].vpc_id, values(aws_subnet.public)[*].vpc_id, values(aws_route_table.private)[*].vpc_id,
        [aws_route_table.public.vpc_id, aws_internet_gateway.this.vpc_id, aws_default_security_group.this.vpc_id, aws_vpc_endpoint.s3.vpc_id, aws_flow_log.this.vpc_id],
      ) : id == aws_vpc.this.id
    ])
    error_message = "All of it lies in the one network, and its default group is without rules."
  }

  assert {
    condition = alltrue([for zone in var.zones :
      aws_route.nat[zone].nat_gateway_id == aws_nat_gateway.this["eu-central-1a"].id
      && aws_route.nat[zone].route_table_id == aws_route_table.private[zone].id
      && aws_route_table_association.private[zone].route_table_id == aws_route_table.private[zone].id
      && aws_route_table_association.private[zone].subnet_id == aws_subnet.private[zone].id
      && aws_route_table_association.public[zone].subnet_id == aws_subnet.public[zone].id
      && aws_route_table_association.public[zone].route_table_id == aws_route_table.public.id
    ])
    error_message = "Each private subnet goes out by NAT, each public one by the gateway."
  }

  assert {
    condition = (
      aws_nat_gateway.this["eu-central-1a"].subnet_id == aws_subnet.public["eu-central-1a"].id
      && aws_nat_gateway.this["eu-central-1a"].allocation_id == aws_eip.nat["eu-central-1a"].id
      && aws_route.internet.gateway_id == aws_internet_gateway.this.id && aws_route.internet.route_table_id == aws_route_table.public.id
      && length(aws_vpc_endpoint.s3.route_table_ids) == 3
    )
    error_message = "NAT stands in a public subnet; S3 is reached from every private one."
  }

  assert {
    condition     = aws_flow_log.this.log_destination == aws_cloudwatch_log_group.flow.arn && aws_flow_log.this.iam_role_arn == aws_iam_role.flow.arn
    error_message = "Flow logs go to their group by their role."
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

run "names_that_do_not_do_are_refused" {
  command = plan

  variables {
    name  = "Grist_Mill"
    zones = ["eu-central-1", "eu-central-2"]
  }

  expect_failures = [var.name, var.zones]
}

run "the_same_zone_twice_is_refused" {
  command = plan

  variables {
    zones = ["eu-central-1a", "eu-central-1a"]
  }

  expect_failures = [var.zones]
}
