import cv2
import einops
import numpy
import torch
