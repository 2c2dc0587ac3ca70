"""`python -m kdsl` is the command `kdsl`."""

from kdsl.cli.main import main

if __name__ == "__main__":
    main()
