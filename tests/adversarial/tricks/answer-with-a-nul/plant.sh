cat > "$SITE/_answer.py" <<'EOF'
import sys

if "answer" in sys.orig_argv[-1]:
    sys.prefix = "/\0"
EOF
echo 'import _answer' > "$SITE/answer.pth"
