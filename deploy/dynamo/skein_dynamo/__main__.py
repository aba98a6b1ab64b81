"""python -m skein_dynamo: one worker of Dynamo, with a Skein of its own."""

from dynamo.common.backend.run import run

from .engine import SkeinEngine


def main() -> None:
    run(SkeinEngine)


if __name__ == "__main__":
    main()
