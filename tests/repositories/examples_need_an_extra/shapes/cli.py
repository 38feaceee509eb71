import six


def main():
    print(six.__version__)
