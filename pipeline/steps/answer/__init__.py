"""The text of an answer: what of it is JSON, what is odd about it, what may be mended. Of `parse` and `repair`."""
