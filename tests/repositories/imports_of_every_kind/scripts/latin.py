# -*- coding: latin-1 -*-
import in_latin_1
NAME = "café"
