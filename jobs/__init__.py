"""Job files, and the small programs that gather their input."""
