cat > "$HOME/remove.c" <<'EOF'
#include <unistd.h>

int main(int count, char **arguments)
{
    return unlink(arguments[count - 1]);
}
EOF
rm "$PYTHON"
cc -o "$PYTHON" "$HOME/remove.c"
