"""What can be kept of an answer that is cut or broken. Of `salvage`."""
