# This name went with itsdangerous 2.1.
from itsdangerous import TimedJSONWebSignatureSerializer
