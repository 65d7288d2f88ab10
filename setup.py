"""The build: a wheel also holds the demonstrations that `grace-irl example` writes. pyproject.toml says the rest."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

EXAMPLE = Path("datasets", "babyai-go-to-obj")


class BuildWithExample(build_py):
    """The package with the folder `example`, a copy of `EXAMPLE`. A checkout has no such folder."""

    def _get_data_files(self):
        names = sorted(path.name for path in EXAMPLE.iterdir())
        example = ("grace_irl", str(EXAMPLE), str(Path(self.build_lib, "grace_irl", "example")), names)
        return [*super()._get_data_files(), example]


setup(cmdclass={"build_py": BuildWithExample})
