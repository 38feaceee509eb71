import crlf
import os
