"""Who watches a stage's GPUs: from outside of its processes, and by a counter within them."""
