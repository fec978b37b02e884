"""What Terraform would do and nobody should: rights without limits, open buckets, lost data, secrets in files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from tests.unit.deploy.terraform_files import Folder, constants, nested, plain, texts

PUBLIC = ("block_public_acls", "block_public_policy", "ignore_public_acls", "restrict_public_buckets")
OPEN = {"0.0.0.0/0", "::/0"}
SECRET = re.compile(r"(?i)(password|secret|token|private_key)s?$")


def rights(folder: Folder) -> Iterator[str]:
    """No statement that allows has wildcards in its actions, everything as resource, or everybody as principal."""
    for (of, name), block in folder.data.items():
        if of != "aws_iam_policy_document":
            continue
        for statement in nested(block, "statement"):
            where = f"{folder.path.name}: policy {name}"
            if plain(statement.get("effect", "Allow")) == "Deny":
                continue
            for action in constants(statement.get("actions", [])):
                if "*" in action:
                    yield f"{where} allows {action}"
            if "actions" not in statement or not {"resources", "principals"} & set(statement):
                yield f"{where} does not say what it allows, or on what"
            if "not_actions" in statement or "not_resources" in statement:
                yield f"{where} allows all but what it names"
            if "*" in set(constants(statement.get("resources", []))):
                yield f"{where} allows its actions on everything"
            for principal in nested(statement, "principals"):
                if "*" in set(constants(principal.get("identifiers", []))):
                    yield f"{where} allows everybody"
    for (of, name), block in folder.resources.items():
        where = f"{folder.path.name}: {of}.{name}"
        for key in ("policy", "assume_role_policy"):
            if of.startswith("aws_") and key in block and "data.aws_iam_policy_document." not in str(block[key]):
                yield f"{where}: {key} is written by hand, where nothing checks it"
    for text in (text for _, block in folder.blocks() for text in constants(block)):
        if re.search(r"AdministratorAccess|FullAccess|PowerUserAccess", text):
            yield f"{folder.path.name}: {text} is more than anything here needs"


def buckets(folder: Folder) -> Iterator[str]:
    """A bucket is private, versioned, encrypted and not destroyed, and nothing current in it expires."""
    for (of, name), block in folder.resources.items():
        if of != "aws_s3_bucket":
            continue
        where, address = f"{folder.path.name}: bucket {name}", f"aws_s3_bucket.{name}."
        beside = {
            kind: other
            for (kind, _), other in folder.resources.items()
            if kind.startswith("aws_s3_bucket_") and address in str(other.get("bucket", ""))
        }
        shut = beside.get("aws_s3_bucket_public_access_block", {})
        if not all(shut.get(key) is True for key in PUBLIC):
            yield f"{where} can be made public"
        if "aws_s3_bucket_acl" in beside:
            yield f"{where} has an ACL"
        versioning = beside.get("aws_s3_bucket_versioning", {})
        if "Enabled" not in set(constants(versioning)):
            yield f"{where} keeps no versions"
        encryption = beside.get("aws_s3_bucket_server_side_encryption_configuration", {})
        if "aws:kms" not in set(constants(encryption)) or "kms_master_key_id" not in set(texts(encryption)):
            yield f"{where} is not encrypted with a key of its own"
        if "aws_s3_bucket_policy" not in beside:
            yield f"{where} takes open connections"
        if block.get("force_destroy") is not False:
            yield f"{where} may be deleted with what is in it"
        for rule in nested(beside.get("aws_s3_bucket_lifecycle_configuration", {}), "rule"):
            if any({"days", "date"} & set(item) for item in nested(rule, "expiration")):
                yield f"{where} loses objects that nobody deleted"


def bucket_policies(folder: Folder) -> Iterator[str]:
    """Each statement of a bucket's policy says for whom and for what it is."""
    policies = [str(block.get("policy")) for (of, _), block in folder.resources.items() if of == "aws_s3_bucket_policy"]
    for (of, name), block in folder.data.items():
        if of == "aws_iam_policy_document" and any(f"document.{name}." in policy for policy in policies):
            for statement in nested(block, "statement"):
                if not {"principals", "resources", "actions"} <= set(statement):
                    yield f"{folder.path.name}: policy {name} does not say for whom or for what"


def kept(folder: Folder) -> Iterator[str]:
    """Buckets and the keys that a bucket is encrypted with cannot be destroyed."""
    has_bucket = any(of == "aws_s3_bucket" for of, _ in folder.resources)
    for (of, name), block in folder.resources.items():
        safe = any(item.get("prevent_destroy") is True for item in nested(block, "lifecycle"))
        if has_bucket and of in ("aws_s3_bucket", "aws_kms_key") and not safe:
            yield f"{folder.path.name}: {of}.{name} may be destroyed"
        if of == "aws_kms_key" and block.get("enable_key_rotation") is not True:
            yield f"{folder.path.name}: {of}.{name} is never rotated"


def releases(folder: Folder) -> Iterator[str]:
    """A Helm release is there as a whole or not at all."""
    for (of, name), block in folder.resources.items():
        if of == "helm_release" and not (block.get("atomic") is True and block.get("cleanup_on_fail") is True):
            yield f"{folder.path.name}: {of}.{name} may stay half done"


def exposure(folder: Folder) -> Iterator[str]:
    """Nothing listens to the whole internet: no group, no API, no service."""
    for (of, name), block in folder.resources.items():
        where = f"{folder.path.name}: {of}.{name}"
        inside = [block]
        if of == "aws_eks_cluster":
            inside = list(nested(block, "vpc_config"))
            if any("public_access_cidrs" not in item for item in inside):
                yield f"{where} names nobody who reaches its API, which means everybody"
        elif of not in ("aws_security_group", "aws_security_group_rule", "aws_vpc_security_group_ingress_rule"):
            continue
        if OPEN & {text for item in inside for text in constants(item)}:
            yield f"{where} is open to the whole internet"
    for (of, name), block in folder.resources.items():
        if of == "aws_subnet" and block.get("map_public_ip_on_launch") is True:
            yield f"{folder.path.name}: {of}.{name} gives public addresses"


def secrets(folder: Folder) -> Iterator[str]:
    """No secret is written down, and a variable that holds one is marked."""
    for name, block in folder.variables.items():
        if SECRET.search(name) and not name.endswith("_secret") and block.get("sensitive") is not True:
            yield f"{folder.path.name}: variable {name} is shown in plans"
    for where, block in folder.blocks():
        for text in texts(block):
            for key in re.findall(r'(\w+)"? = "[^"$]+"', text):
                if SECRET.search(key):
                    yield f"{where}: {key} is written down"
        if isinstance(block, dict):
            for key, value in block.items():
                if SECRET.search(plain(key)) and isinstance(value, str) and value.startswith('"') and len(value) > 2:
                    yield f"{where}: {plain(key)} is written down"


CHECKS: tuple[Callable[[Folder], Iterator[str]], ...] = (
    rights,
    buckets,
    bucket_policies,
    kept,
    releases,
    exposure,
    secrets,
)
