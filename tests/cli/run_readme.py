#!/usr/bin/env python3
"""The planish-cli lines of the README run and exit 0, in their order, from the source folder.

  python3 tests/cli/run_readme.py PLANISH_CLI SOURCE_DIR
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

CLI, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
ENVIRONMENT = dict(os.environ, PLANISH_RESOURCES=str(SOURCE / "resources"))


def main():
    lines = [line.strip() for line in (SOURCE / "README.md").read_text().splitlines()]
    commands = [line for line in lines if line.startswith("build/release/bin/planish-cli ")]
    if len(commands) < 5:
        print("the README shows no commands")
        return 1
    with tempfile.TemporaryDirectory() as scratch:
        for command in commands:
            words = shlex.split(re.sub(r"/tmp/", scratch + "/", command))
            done = subprocess.run([CLI, *words[1:]], capture_output=True, text=True, timeout=280, cwd=SOURCE, env=ENVIRONMENT, check=False)
            if done.returncode != 0:
                print(f"{command}\nexit {done.returncode}: {done.stderr}")
                return 1
    print(f"{len(commands)} commands of the README ran")
    return 0


if __name__ == "__main__":
    sys.exit(main())
