import contextlib
import sys
import os
from typing import TYPE_CHECKING

try:
    import tried
except ImportError:
    import fallback as tried
else:
    import tried.extra

try:
    import tried_in_a_tuple
except (ValueError, ModuleNotFoundError):
    tried_in_a_tuple = None

try:
    import tried_bare
except:
    pass

with contextlib.suppress(ImportError):
    import suppressed

if TYPE_CHECKING:
    import only_typed
else:
    import not_typed

if sys.platform == "win32":
    import on_windows
elif os.name == "posix":
    import on_posix

try:
    import really_needed
except ValueError:
    pass
finally:
    import at_last

match sys.argv:
    case []:
        import in_a_match
