import packaging


def run():
    print(packaging.__version__)
