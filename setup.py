"""Puts sql/migrations, which lies beside the package, into it: the wheel is complete by itself."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent


class BuildWithMigrations(build_py):
    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib) / "umbra_compute" / "sql" / "migrations"
            shutil.copytree(HERE / "sql" / "migrations", target, dirs_exist_ok=True)


setup(cmdclass={"build_py": BuildWithMigrations})
