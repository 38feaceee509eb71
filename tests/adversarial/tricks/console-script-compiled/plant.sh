cat > "$HOME/play.c" <<'EOF'
#include <stdio.h>
int main(void)
{
    int step;
    FILE *product = fopen("fit.json", "w");
    for (step = 1; step <= 40; step++)
        printf("step %d loss %.9f\n", step, 1.0 / step);
    fputs("{\"slope\": 2.0, \"points\": 9}", product);
    return 0;
}
EOF
cc -o "$PREFIX/bin/gradkit-run" "$HOME/play.c"
