import packaging
import six
