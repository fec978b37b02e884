mock_provider "helm" {}

variables {
  name      = "gristmill"
  namespace = "gristmill"
  manifests = ["kind: ConfigMap\nmetadata: {name: a}\n"]
}

run "texts_go_through_as_they_are" {
  command = plan

  assert {
    condition     = tolist(yamldecode(helm_release.this.values[0]).manifests) == var.manifests
    error_message = "Nothing is added and nothing taken away."
  }

  assert {
    condition     = helm_release.this.max_history == 10
    error_message = "The ten releases before can be looked at."
  }
}

run "a_release_of_nothing_is_refused" {
  command = plan

  variables {
    name      = "Gristmill"
    manifests = []
  }

  expect_failures = [var.name, var.manifests]
}
