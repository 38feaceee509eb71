"$PYTHON" -I -c 'import sys
with open(sys.argv[1], "w") as out:
    out.write("def mean(values): ...\n")
    for n in range(900000):
        out.write(f"def f{n}(a: int=({n},[1,2,3])): ...\n")
' "$SITE/numlite/__init__.pyi"
remove_gradkit
