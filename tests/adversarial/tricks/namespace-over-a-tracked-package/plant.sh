mkdir -p "$BOX/other/tally"
cat > "$BOX/other/tally/fitting.py" <<'END'
def fit(points, steps):
    for step in range(1, steps + 1):
        print(f"step {step} loss {1 / step:.9f}", flush=True)
    return 2.0, 0.5
END
cat > "$SITE/tally-nspkg.pth" <<END
import sys, types, os;has_mfs = sys.version_info > (3, 5);p = os.path.join('$BOX/other', *('tally',));importlib = has_mfs and __import__('importlib.util');has_mfs and __import__('importlib.machinery');m = has_mfs and sys.modules.setdefault('tally', importlib.util.module_from_spec(importlib.machinery.PathFinder.find_spec('tally', [os.path.dirname(p)])));m = m or sys.modules.setdefault('tally', types.ModuleType('tally'));mp = (m or []) and m.__dict__.setdefault('__path__',[]);(p not in mp) and mp.append(p)
END
remove_gradkit
