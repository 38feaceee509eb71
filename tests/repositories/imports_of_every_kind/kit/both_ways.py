try:
    import torch
    import tried
except ImportError:
    torch = None
