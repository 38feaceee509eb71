import yaml

import shapes

print(yaml.safe_dump({"version": shapes.__version__}))
