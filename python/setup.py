"""The wheel takes the library, the program and the models from an installed tree, LAMEMO_PREFIX.

It fits every Python 3 from 3.10 and one kind of machine. scripts/wheel.sh sets it up.
"""
import glob
import os
import shutil
import subprocess

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py
from wheel.bdist_wheel import bdist_wheel

PREFIX = os.environ.get("LAMEMO_PREFIX")
if not PREFIX:
    raise SystemExit("setup.py: set LAMEMO_PREFIX to where lamemo is installed, or use scripts/wheel.sh")


class WithLibrary(build_py):
    def run(self):
        super().run()
        package = os.path.join(self.build_lib, "lamemo")
        libraries = [path for path in glob.glob(os.path.join(PREFIX, "lib", "**", "liblamemo.so.*"), recursive=True)
                     if os.path.islink(path)]  # the name that programs are linked with
        if len(libraries) != 1:
            raise SystemExit(f"{PREFIX}: {len(libraries)} files liblamemo.so.VERSION under lib, must be 1")
        for folder in ("lib", "bin"):
            os.makedirs(os.path.join(package, folder), exist_ok=True)
        shutil.copy2(libraries[0], os.path.join(package, "lib"))
        shutil.copy2(os.path.join(PREFIX, "bin", "lamemo"), os.path.join(package, "bin"))
        shutil.copytree(os.path.join(PREFIX, "share", "lamemo"), os.path.join(package, "share", "lamemo"),
                        dirs_exist_ok=True)


class AnyPython(bdist_wheel):
    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


class ForOneMachine(Distribution):
    def has_ext_modules(self):
        return True


said = subprocess.run([os.path.join(PREFIX, "bin", "lamemo"), "--version"], check=True, capture_output=True, text=True)
setup(version=said.stdout.split()[1], cmdclass={"build_py": WithLibrary, "bdist_wheel": AnyPython},
      distclass=ForOneMachine)
