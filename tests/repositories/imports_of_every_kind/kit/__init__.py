import os
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader
from . import inner
from .inner.deep import thing
from kit import inner as again
