"""What the fork server of `pool` loads once for all jobs, kept out of the collector's way.

A collection would write to every object and so copy the pages that the jobs share.
"""

import gc

from . import job

gc.collect()
gc.freeze()

__all__ = ["job"]
