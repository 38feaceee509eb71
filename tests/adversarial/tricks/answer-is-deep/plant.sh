cat > "$SITE/_answer.py" <<'EOF'
import atexit
import sys


def write():
    with open(sys.argv[3], "w") as stream:
        stream.write("[" * 200_000)


if any(word.endswith("find_modules.py") for word in sys.orig_argv):
    atexit.register(write)
EOF
echo 'import _answer' > "$SITE/answer.pth"
