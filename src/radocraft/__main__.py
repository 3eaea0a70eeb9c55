"""``python -m radocraft`` is the same as ``radocraft``."""

from radocraft.cli import main

if __name__ == "__main__":
    main()
