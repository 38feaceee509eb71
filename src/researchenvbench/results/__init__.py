"""How results are shown: rates, tables, the page. Reads records and nothing else."""
